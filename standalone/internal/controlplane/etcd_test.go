package controlplane

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A full disk is the usual reason why etcd ends the process, which has its log in a file that users do not see.
func TestFatalErrorsAreOnTheTerminal(t *testing.T) {
	var log, terminal bytes.Buffer
	logger := etcdLogger(&log, &terminal, zapcore.WarnLevel).WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	logger.Warn("slow fdatasync")
	if terminal.Len() > 0 {
		t.Errorf("a warning is on the terminal: %s", &terminal)
	}
	func() {
		defer func() { _ = recover() }()
		logger.Fatal("failed to save Raft hard state and entries", zap.Error(errors.New("no space left on device")))
	}()
	for name, text := range map[string]string{"log": log.String(), "terminal": terminal.String()} {
		if !strings.Contains(text, "no space left on device") {
			t.Errorf("the %s is %q", name, text)
		}
	}
	if got := terminal.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "Error: etcd cannot go on") {
		t.Errorf("the terminal shows %q", got)
	}
}
