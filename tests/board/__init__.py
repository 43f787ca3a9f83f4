"""Stand-ins for boards: arm64 root file systems run by qemu-user, with sshd, planted /sys files and vendors' tools."""
