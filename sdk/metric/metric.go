// Package metric registers metrics.
//
// What does not belong here: the metrics themselves, which are declared where they are counted.
package metric

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Registered registers c and returns it, or the equal metric that is already registered. Components in one process share their
// metrics.
func Registered[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	there := prometheus.AlreadyRegisteredError{}
	if err := registry.Register(c); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}
