package rollout

import (
	"fmt"
	"time"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/schedule"
)

// window is when changes may begin.
type window struct {
	opens    schedule.Times
	duration time.Duration
}

// windowsOf returns the windows of a strategy. Errors name the field.
func windowsOf(strategy *fleetv1.RolloutStrategy) ([]window, error) {
	var all []window
	for i, w := range strategy.Windows {
		times, err := schedule.ParseTimes(w.Schedule)
		if err != nil {
			return nil, fmt.Errorf("windows[%d].schedule: %w", i, err)
		}
		all = append(all, window{opens: times, duration: time.Duration(w.DurationSeconds) * time.Second})
	}
	return all, nil
}

// open reports whether a window is open, and when one opens next; zero if none does. Without windows, changes may always begin.
func open(windows []window, now time.Time) (isOpen bool, opens time.Time) {
	if len(windows) == 0 {
		return true, time.Time{}
	}
	for _, w := range windows {
		// A window that opened at most its duration ago is open: the first time after that moment is then not in the future.
		if first := w.opens.Next(now.Add(-w.duration)); !first.IsZero() && !first.After(now) {
			return true, time.Time{}
		}
		if next := w.opens.Next(now); !next.IsZero() && (opens.IsZero() || next.Before(opens)) {
			opens = next
		}
	}
	return false, opens
}
