package backup

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// A backup that takes longer than shownAfter is shown as running, and how far it is, again after each shownEvery. Most take less time, and
// cost no write for it.
const shownAfter, shownEvery = 10 * time.Second, time.Minute

// progress is how much of a snapshot was read.
type progress struct {
	content io.Reader
	read    atomic.Int64
	// member and size are where the snapshot is from, and how large it is.
	member string
	size   int64
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	n, err := p.content.Read(b)
	p.read.Add(int64(n))
	return n, err
}

// String describes the progress.
func (p *progress) String() string {
	return fmt.Sprintf("%s of %s were read from etcd member %s", bytesOf(p.read.Load()), bytesOf(p.size), p.member)
}

// bytesOf returns a number of bytes as 12Mi.
func bytesOf(n int64) string {
	const mebi = 1 << 20
	return resource.NewQuantity((n+mebi-1)/mebi*mebi, resource.BinarySI).String()
}

// watched runs put, which stores an archive, and publishes meanwhile how far it is. It returns when put has.
func (c *Controller) watched(ctx context.Context, s *scope, p *progress, put func() error) error {
	done := make(chan error, 1)
	go func() {
		err := error(nil)
		defer func() { done <- err }()
		defer failsafe.Recover("storing the archive", &err)
		err = put()
	}()
	timer := c.timers.NewTimer(shownAfter)
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-timer.C():
			s.backup.Status.Phase = fleetv1.BackupPhaseRunning
			if err := step.Publish(ctx, report.False(fleetv1.BackupCompletedCondition, fleetv1.BackupRunningReason, "%s", p)); err != nil {
				ctrl.LoggerFrom(ctx).V(2).Info("The progress could not be written", "error", err.Error())
			}
			timer.Reset(shownEvery)
		}
	}
}
