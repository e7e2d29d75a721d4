package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/operator/internal/declared"
)

// firstDownload and lastDownload are the limits of the pause between two attempts of a download. GitHub allows 60 requests per hour
// without a token, and an attempt makes up to three.
const (
	firstDownload = 10 * time.Second
	lastDownload  = 5 * time.Minute
)

// downloads remembers the downloads that failed. A change of the spec ends the pause.
type downloads struct {
	mu  sync.Mutex
	all map[types.UID]attempt
}

type attempt struct {
	generation int64
	pause      time.Duration
	next       time.Time
}

// failed remembers a failure, and returns the pause until the next attempt.
func (d *downloads) failed(p declared.Provider, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.all[p.GetUID()]
	pause := firstDownload
	if last.generation == p.GetGeneration() && last.pause > 0 {
		pause = min(2*last.pause, lastDownload)
	}
	if d.all == nil {
		d.all = map[types.UID]attempt{}
	}
	d.all[p.GetUID()] = attempt{p.GetGeneration(), pause, now.Add(pause)}
	return pause
}

// left returns how long the pause still lasts.
func (d *downloads) left(p declared.Provider, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last := d.all[p.GetUID()]; last.generation == p.GetGeneration() {
		return last.next.Sub(now)
	}
	return 0
}

func (d *downloads) forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, uid)
}
