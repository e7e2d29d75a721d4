package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// begin starts a shell command.
func begin(t *testing.T, log, command string) *Process {
	t.Helper()
	p, err := Start("/bin/sh", log, []string{"GREETING=hello"}, "-c", command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestProcessesAreKilledAndLogsContinue(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	first := begin(t, log, `echo "$GREETING first"; trap "" TERM; while :; do sleep 1; done`)
	read := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if text, err := os.ReadFile(log); err == nil && strings.Contains(string(text), want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the log does not contain %q", want)
			}
		}
	}
	read("hello first")
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Exited():
	default:
		t.Error("a process that was killed has not ended")
	}
	second := begin(t, log, `echo "$GREETING second"; exec sleep 1000`)
	read("hello second")
	read("hello first")
	if err := second.Suspend(); err != nil {
		t.Error(err)
	}
	if err := second.Resume(); err != nil {
		t.Error(err)
	}
	if err := second.Stop(); err != nil {
		t.Error(err)
	}
	if err := second.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
}
