package process

import "syscall"

// dieWithParent makes the processes end when this one is killed and has no chance to stop them.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
