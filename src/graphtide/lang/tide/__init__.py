"""tide"""
