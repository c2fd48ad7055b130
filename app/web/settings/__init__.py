"""Pages of a workspace's settings, audit log and billing, and of the viewer's notifications."""
