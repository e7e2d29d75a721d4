package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// look is the interval between two looks at whether the managers are done.
	look = 250 * time.Millisecond
	// still is how long nothing must happen until they are: reports about what is under way are delayed for up to ten seconds.
	still = 11 * time.Second
	// backlog is how long a queue must not have been empty for its controller to be at work. Many objects that are reconciled again and
	// again, because of what does not respond, are queued at almost any moment, but the queue is empty in between.
	backlog = 2 * time.Second
	// report is how often progress is reported.
	report = 15 * time.Second
)

// quiet waits until our managers have nothing more to do.
type quiet struct {
	etcd      clientv3.KV
	api       kubernetes.Interface
	metrics   prometheus.Gatherer
	workloads *workloads
	observer  *observer
	copied    []*appsv1.Deployment
	progress  func(format string, args ...any)
	// empty is when the queue of a controller was last seen to be empty, or for the first time.
	empty map[string]time.Time
}

// wait returns when all managers are available, and nothing has happened for a while. The error says what still happens.
func (q *quiet) wait(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var revision int64
	since, why := time.Now(), ""
	for reported := since; ; {
		now, busy, err := q.look(ctx)
		if err == nil {
			if now != revision || busy != "" {
				if busy == "" {
					busy = "objects are still written"
				}
				revision, since, why = now, time.Now(), busy
			} else if time.Since(since) >= still {
				return nil
			}
		}
		if why != "" && time.Since(reported) >= report {
			reported = time.Now()
			q.progress("Not done yet: %s", why)
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return cause
			}
			return errors.Join(fmt.Errorf("not done before the --timeout: %s", why), err)
		case <-tick.C:
		}
	}
}

// look returns the revision of the storage, and what is not done, if anything is.
func (q *quiet) look(ctx context.Context) (revision int64, busy string, err error) {
	r, err := q.etcd.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, "", err
	}
	for _, d := range q.copied {
		live, err := q.api.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return 0, "", err
		}
		if live.Status.AvailableReplicas == 0 {
			return r.Header.Revision, q.unavailable(live), nil
		}
	}
	working, err := q.working(time.Now())
	if err != nil {
		return 0, "", err
	}
	if len(working) > 0 {
		return r.Header.Revision, "these controllers still work: " + strings.Join(working, ", "), nil
	}
	if waiting := q.workloads.waiting(); len(waiting) > 0 {
		return r.Header.Revision, "these workload clusters have not answered yet: " + some(waiting), nil
	}
	return r.Header.Revision, "", nil
}

// unavailable says why a manager does not run.
func (q *quiet) unavailable(d *appsv1.Deployment) string {
	reason := "it is starting"
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Message != "" {
			reason = c.Message
		}
	}
	text := fmt.Sprintf("our manager does not run as Deployment %s/%s: %s", d.Namespace, d.Name, reason)
	if forbidden := q.observer.sorted(q.observer.forbidden); len(forbidden) > 0 {
		text += "; its ServiceAccount may not: " + strings.Join(forbidden, ", ")
	}
	return text
}

// working returns the controllers whose queues have not been empty for a while, sorted.
func (q *quiet) working(now time.Time) ([]string, error) {
	families, err := q.metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the controllers: %w", err)
	}
	if q.empty == nil {
		q.empty = map[string]time.Time{}
	}
	found := map[string]bool{}
	for _, family := range families {
		if family.GetName() != "workqueue_depth" {
			continue
		}
		for controller, depth := range byController(family.GetMetric()) {
			if _, known := q.empty[controller]; depth <= 0 || !known {
				q.empty[controller] = now
			}
			if now.Sub(q.empty[controller]) >= backlog {
				found[controller] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// byController adds up the values of a metric by controller: it may have one for each priority.
func byController(all []*dto.Metric) map[string]float64 {
	sums := map[string]float64{}
	for _, m := range all {
		for _, pair := range m.GetLabel() {
			if pair.GetName() == "controller" {
				sums[pair.GetValue()] += m.GetGauge().GetValue()
			}
		}
	}
	return sums
}

// shown is how many names are listed of many.
const shown = 5

// some returns the first of many names.
func some(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
