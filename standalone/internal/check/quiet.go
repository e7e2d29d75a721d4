package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
)

// quiet waits until our managers have nothing more to do.
type quiet struct {
	etcd      clientv3.KV
	api       kubernetes.Interface
	metrics   prometheus.Gatherer
	workloads *workloads
	observer  *observer
	copied    []*appsv1.Deployment
}

// wait returns when all managers are available, and nothing has happened for a while. The error says what still happens.
func (q *quiet) wait(ctx context.Context) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	var revision int64
	since, why := time.Now(), ""
	for {
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
	working, err := q.working()
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

// working returns the controllers that reconcile, or have something in their queue, sorted.
func (q *quiet) working() ([]string, error) {
	families, err := q.metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the controllers: %w", err)
	}
	found := map[string]bool{}
	for _, family := range families {
		label := map[string]string{"workqueue_depth": "controller", "controller_runtime_active_workers": "controller"}[family.GetName()]
		if label == "" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetGauge().GetValue() <= 0 {
				continue
			}
			for _, pair := range m.GetLabel() {
				if pair.GetName() == label {
					found[pair.GetValue()] = true
				}
			}
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
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
