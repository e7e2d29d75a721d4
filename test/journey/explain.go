package journey

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/explain/gather"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// explained runs `clusterctl explain` for the Cluster.
func (c *Subject) explained() (explain.Report, error) {
	r := c.Tools.Clusterctl(c.t.Context(), "", "explain", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig, "--output", "json")
	report := explain.Report{}
	if r.Failed {
		return report, fmt.Errorf("%s", r)
	}
	return report, json.Unmarshal([]byte(r.Out), &report)
}

// explainInterval is the shortest time between two runs of `clusterctl explain` for a condition: each makes some twenty requests.
const explainInterval = 2 * time.Second

// seldom returns a condition that is not checked again before explainInterval has passed if it is false.
func seldom(condition Condition) Condition {
	var last error
	var checked time.Time
	return func(p *Snapshot) error {
		if last == nil || time.Since(checked) >= explainInterval {
			last, checked = condition(p), time.Now()
		}
		return last
	}
}

// Explains is true when `clusterctl explain` reports this root cause, as "Reason Kind" or "Reason Kind/name", with these words in
// its message.
func (c *Subject) Explains(cause string, words ...string) Condition {
	return seldom(func(*Snapshot) error {
		report, err := c.explained()
		if err != nil {
			return err
		}
		if len(report.Causes) == 0 {
			return fmt.Errorf("clusterctl explain finds nothing, want %s", cause)
		}
		return matches(&report.Causes[0], cause, words)
	})
}

// ExplainsAll is true when `clusterctl explain` reports all these causes, in any order.
func (c *Subject) ExplainsAll(causes ...string) Condition {
	return seldom(func(*Snapshot) error {
		report, err := c.explained()
		if err != nil {
			return err
		}
		for _, want := range causes {
			found := false
			for i := range report.Causes {
				found = found || matches(&report.Causes[i], want, nil) == nil
			}
			if !found {
				return fmt.Errorf("clusterctl explain does not report %s, but %+v", want, report.Causes)
			}
		}
		return nil
	})
}

// ExplainsNothing is true when `clusterctl explain` finds nothing wrong.
func (c *Subject) ExplainsNothing(*Snapshot) error {
	report, err := c.explained()
	if err == nil && !report.Healthy {
		err = fmt.Errorf("clusterctl explain reports %+v", report.Causes)
	}
	return err
}

// Waits runs `clusterctl wait cluster`, and checks that the conditions are true when it ends.
func (c *Subject) Waits(conditions ...Condition) {
	c.t.Helper()
	r := c.Tools.Clusterctl(c.t.Context(), "", "wait", "cluster", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig,
		"--timeout", "5m")
	if r.Failed {
		c.t.Fatal(r)
	}
	snapshot := c.Snapshot()
	for _, condition := range conditions {
		if err := condition(snapshot); err != nil {
			c.t.Errorf("clusterctl wait cluster ended too early: %v\n%s", err, r)
		}
	}
}

// NeverBlocked samples what `clusterctl explain` finds after changes of the Cluster, until the returned function is called. A Cluster
// with which nothing is wrong may be progressing, but nothing blocks it.
func (c *Subject) NeverBlocked() (still func()) {
	c.t.Helper()
	s, err := management.Scheme()
	if err != nil {
		c.t.Fatal(err)
	}
	reader, err := client.New(c.Config, client.Options{Scheme: s})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.t.Context())
	result := make(chan error, 1)
	go func() {
		defer close(result)
		for samples := 0; ctx.Err() == nil || samples == 0; samples++ {
			changed := c.changes.next(c.Namespace)
			input, err := gather.Read(c.t.Context(), reader, c.Key(), time.Now())
			if err == nil {
				err = notBlocked(explain.Explain(input))
			}
			if err != nil {
				result <- fmt.Errorf("%w\n%s", err, c.log())
				return
			}
			pause(ctx, changed)
		}
	}()
	return func() {
		c.t.Helper()
		stop()
		if err := <-result; err != nil {
			c.t.Errorf("nothing blocks a healthy Cluster: %v", err)
		}
	}
}

// pause waits for a change, and then a moment: samples are many requests.
func pause(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-time.After(tick):
	case <-ctx.Done():
	}
	select {
	case <-time.After(explainInterval):
	case <-ctx.Done():
	}
}

func notBlocked(r explain.Report) error {
	for i := range r.Causes {
		if cause := &r.Causes[i]; cause.State == explain.Blocked || i == 0 && cause.Reason == explain.NotReconciled {
			return fmt.Errorf("clusterctl explain reports %s %s: %s, since %s", cause.Reason, cause.Object, cause.Message, cause.Since)
		}
	}
	return nil
}

// matches returns why a cause is not the wanted one. Its chain must lead from the Cluster to its object.
func matches(have *explain.Cause, cause string, words []string) error {
	reason, object, _ := strings.Cut(cause, " ")
	if string(have.Reason) != reason || have.Object.Kind != object && have.Object.String() != object {
		return fmt.Errorf("clusterctl explain reports %s %s (%s), want %s", have.Reason, have.Object, have.Message, cause)
	}
	for _, word := range words {
		if !strings.Contains(have.Message, word) {
			return fmt.Errorf("clusterctl explain reports %q, want %q", have.Message, word)
		}
	}
	if n := len(have.Chain); n == 0 || have.Chain[0].Object.Kind != "Cluster" || have.Chain[n-1].Object != have.Object {
		return fmt.Errorf("the chain of %s is %+v", cause, have.Chain)
	}
	return nil
}
