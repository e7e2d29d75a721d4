package env

import "syscall"

// dieWithParent makes the server end when the test binary is killed and TestMain has no chance to stop it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
