package etcdsnapshot

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure collects why etcd wants to end the process. Its packages log that, and expect not to return: here only the goroutine ends.
type failure struct {
	once   sync.Once
	failed chan struct{} // closed with the first one
	reason string
}

func newFailure() *failure { return &failure{failed: make(chan struct{})} }

// OnWrite implements zapcore.CheckWriteHook for messages after which the process or the goroutine would end.
func (f *failure) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	reasons := []string{entry.Message}
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok {
			reasons = append(reasons, err.Error())
		}
	}
	f.report(strings.Join(reasons, ": "))
	runtime.Goexit()
}

func (f *failure) report(reason string) {
	f.once.Do(func() {
		f.reason = fmt.Sprintf("%.300s", reason)
		close(f.failed)
	})
}

// err returns the failure, or nil.
func (f *failure) err() error {
	select {
	case <-f.failed:
		return fmt.Errorf("etcd fails: %s", f.reason)
	default:
		return nil
	}
}

// logger returns the logger for etcd. Nothing is written anywhere: messages would have keys of the cluster.
func (f *failure) logger() *zap.Logger {
	return zap.NewNop().WithOptions(zap.WithFatalHook(f), zap.WithPanicHook(f))
}

// run calls a function of etcd in a goroutine that may end early, and waits for it.
func (f *failure) run(call func() error) error {
	err := errors.New("etcd has ended the goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				f.report(fmt.Sprint(cause))
			}
		}()
		debug.SetPanicOnFault(true)
		err = call()
	}()
	<-done
	if failed := f.err(); failed != nil {
		return failed
	}
	return err
}
