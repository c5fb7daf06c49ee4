"""AlarmConfirmation, the rule of paper 2, over many equipments: ours and clipspy, same events."""
