package process

import "syscall"

// dieWithParent ends the processes if this one is killed without stopping them.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
