package backup

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// timers has one timer, which the test lets fire.
type timers struct {
	clock.Clock
	fire  chan time.Time
	reset chan time.Duration
}

func (f timers) NewTimer(time.Duration) clock.Timer { return f }

// C implements clock.Timer.
func (f timers) C() <-chan time.Time { return f.fire }

// Stop implements clock.Timer.
func (timers) Stop() bool { return true }

// Reset implements clock.Timer.
func (f timers) Reset(d time.Duration) bool { f.reset <- d; return true }

// run begins to make a backup whose etcd sends no second chunk.
func run(t *testing.T) (w *world, shown timers, ended chan error) {
	t.Helper()
	shown = timers{fire: make(chan time.Time), reset: make(chan time.Duration)}
	w = newWorld(t, newBackup(nil))
	w.etcd.gate, w.timers = make(chan struct{}), shown
	w.restart(t)
	ended = make(chan error, 1)
	runner := w.runner
	go func() {
		_, err := runner.Reconcile(t.Context(), requestOf(newBackup(nil)))
		ended <- err
	}()
	return w, shown, ended
}

// TestRunning: a backup that takes longer than a few seconds is shown as running, with how far it is.
func TestRunning(t *testing.T) {
	w, shown, ended := run(t)
	for range 2 {
		shown.fire <- time.Time{}
		if again := <-shown.reset; again != shownEvery {
			t.Errorf("it is shown again after %s", again)
		}
		if b := w.backup(t); b.Status.Phase != fleetv1.BackupPhaseRunning || b.Status.Attempts != 1 {
			t.Errorf("while it is made: %+v", b.Status)
		}
		// How much was read depends on what the goroutines have done.
		got := w.state(t, fleetv1.BackupCompletedCondition)
		if !strings.HasPrefix(got, "False Running ") || !strings.HasSuffix(got, "of 1Mi were read from etcd member m-1") {
			t.Errorf("the condition is %s", got)
		}
	}
	close(w.etcd.gate)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if b := w.backup(t); b.Status.Phase != fleetv1.BackupPhaseCompleted || b.Status.Archive == nil {
		t.Errorf("in the end: %+v", b.Status)
	}
}

// TestKilledWhileRunning: what was published is not why the attempt failed.
func TestKilledWhileRunning(t *testing.T) {
	w, shown, ended := run(t)
	shown.fire <- time.Time{}
	<-shown.reset
	gate := w.etcd.gate
	t.Cleanup(func() { close(gate); <-ended })
	w.restart(t)
	w.reconcile(t)
	got := w.state(t, fleetv1.BackupCompletedCondition)
	if !strings.HasPrefix(got, "False Pending the manager ended while the backup was made: ") {
		t.Errorf("state: %s", got)
	}
	if b := w.backup(t); b.Status.Phase != fleetv1.BackupPhasePending {
		t.Errorf("phase %s", b.Status.Phase)
	}
}
