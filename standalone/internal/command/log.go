package command

import (
	"fmt"
	"io"
	"strconv"

	"github.com/go-logr/logr"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

const (
	logMegabytes = 50 // size at which the log file is rotated
	logBackups   = 2  // rotated files that are kept
)

// logTarget is where the whole process logs to.
type logTarget struct {
	writer io.Writer
	logger logr.Logger
	path   string    // of the log file, or ""
	fatal  io.Writer // also receives why etcd ends the process; nil if that is in the log on the terminal
	close  func() error
}

// openLog directs the logs of all libraries to a file in the data directory, or to errOut if -v is set.
func (o *serveOptions) openLog(dir *datadir.Dir, errOut io.Writer) logTarget {
	target := logTarget{writer: errOut, close: func() error { return nil }}
	if !o.logToStderr {
		file := &lumberjack.Logger{Filename: dir.Path("capi.log"), MaxSize: logMegabytes, MaxBackups: logBackups}
		target = logTarget{writer: file, path: file.Filename, fatal: errOut, close: file.Close}
	}
	var level klog.Level
	_ = level.Set(strconv.Itoa(o.verbosity)) // sets klog's own verbosity; an int is always accepted
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(target.writer), textlogger.Verbosity(o.verbosity)))
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	ctrllog.SetLogger(logger)
	target.logger = logger
	return target
}

// explain adds the path of the log to an error.
func (t logTarget) explain(err error) error {
	if err == nil || t.path == "" {
		return err
	}
	return fmt.Errorf("%w (the log is in %s)", err, t.path)
}
