package journey

import "syscall"

// dieWithParent kills the program when the test binary is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
