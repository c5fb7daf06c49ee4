package graphtide;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files without a process for the permissions of each, and without .crc files. */
public class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Raw());
  }

  @Override
  public void initialize(URI name, Configuration settings) throws IOException {
    super.initialize(name, settings);
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }

  /** Files have the permissions that they were made with: those of the user's umask. */
  public static class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) {}
  }
}
