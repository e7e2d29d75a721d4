package step

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterMetric registers a metric, and returns it, or an equal one that is registered already: several components in one process share
// their metrics.
func RegisterMetric[C prometheus.Collector](registry prometheus.Registerer, c C) C {
	there := prometheus.AlreadyRegisteredError{}
	if err := registry.Register(c); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}
