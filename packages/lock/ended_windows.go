package lock

// isRunning reports whether a process of this machine is running, or may be: holders are identified on Linux only.
func isRunning(int) bool { return true }
