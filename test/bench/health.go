package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

const (
	// checkTimeout is how long a Node must be Unknown.
	checkTimeout = 5 * time.Second
	// failing is the reciprocal of the share of Machines, all of them workers, that lose power.
	failing = 10
)

// outage is an experiment: a share of the workers of every cluster loses power at once, and one cluster is cut off.
type outage struct {
	world *world
	// cut is the name of the cluster that is cut off.
	cut string
	// victims are the machines without power, by cluster, and before all Machines at that time.
	victims map[string][]string
	before  map[string]bool
	// marked and gone are when the victims were found unhealthy, and when they were deleted, since the beginning.
	marked, gone map[string]time.Duration
}

// health creates clusters, takes the power of a tenth of the workers of each, and prints how long their replacement took, and what it
// cost. Nothing may be remediated in the cluster that is cut off, nor any machine with power.
func (w *world) health(ctx context.Context, out io.Writer, clusters, workers int) error {
	for i := range clusters {
		if err := w.create(ctx, checkedCluster(fmt.Sprintf("h%d-", i), workers)); err != nil {
			return err
		}
		if err := w.awaitRunning(ctx, fmt.Sprintf("h%d-", i), 1+workers); err != nil {
			return err
		}
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	o := &outage{
		world: w, cut: fmt.Sprintf("h%d-", clusters-1), victims: map[string][]string{}, before: map[string]bool{},
		marked: map[string]time.Duration{}, gone: map[string]time.Duration{},
	}
	m, err := w.meter(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := o.begin(ctx, (1+workers)/failing); err != nil {
		return err
	}
	if err := w.await(ctx, func() (string, bool) { return o.observe(time.Since(begun), clusters-1, workers) }); err != nil {
		return err
	}
	r, err := m.row(ctx, scenario{Name: "failures", Clusters: len(o.gone)}, time.Since(begun).Seconds())
	if err != nil {
		return err
	}
	o.print(out, r)
	if err := o.violations(); err != nil {
		return err
	}
	if err := w.idle(ctx, out, time.Minute); err != nil {
		return err
	}
	return o.end(ctx, out, workers)
}

// checkedCluster returns a Cluster whose workers have a health check.
func checkedCluster(name string, workers int) *unstructured.Unstructured {
	c := clusterOf(scenario{ControlPlanes: 1, Workers: workers}, name+"c")
	topology := c.Object["spec"].(map[string]any)["topology"].(map[string]any)
	deployment := topology["workers"].(map[string]any)["machineDeployments"].([]any)[0].(map[string]any)
	deployment["machineHealthCheck"] = map[string]any{"maxUnhealthy": "40%", "unhealthyConditions": []any{
		map[string]any{"type": "Ready", "status": "Unknown", "timeout": checkTimeout.String()},
	}}
	return c
}

// begin takes the power of a number of workers of each cluster, and cuts off one cluster.
func (o *outage) begin(ctx context.Context, each int) error {
	for _, m := range o.world.machines.named("h") {
		o.before[m.GetName()] = true
	}
	for _, c := range o.world.clusters.named("h") {
		prefix := strings.TrimSuffix(c.GetName(), "c")
		var workers []string
		for _, m := range o.world.machines.named(prefix) {
			if _, is := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; !is {
				workers = append(workers, m.GetName())
			}
		}
		slices.Sort(workers)
		if len(workers) < each {
			return fmt.Errorf("cluster %s has only %d workers", c.GetName(), len(workers))
		}
		o.victims[prefix] = workers[:each]
		if err := o.inject(ctx, c, map[string]any{"deadMachines": workers[:each], "unresponsive": prefix == o.cut}); err != nil {
			return err
		}
	}
	return nil
}

// inject sets the faults of a simulated cluster.
func (o *outage) inject(ctx context.Context, cluster *unstructured.Unstructured, faults map[string]any) error {
	name, _, err := unstructured.NestedString(cluster.Object, "spec", "infrastructureRef", "name")
	if err != nil {
		return err
	}
	text, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{inmemoryv1.FaultsAnnotation: string(text)}},
	})
	if err != nil {
		return err
	}
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1alpha1")
	infrastructure.SetKind("InMemoryCluster")
	infrastructure.SetNamespace(cluster.GetNamespace())
	infrastructure.SetName(name)
	return o.world.Client.Patch(ctx, infrastructure, client.RawPatch("application/merge-patch+json", patch))
}

// observe records which victims are marked and gone, and reports whether all are replaced, except for those of the cluster that is cut off.
func (o *outage) observe(since time.Duration, clusters, workers int) (string, bool) {
	running := 0
	now := map[string]*unstructured.Unstructured{}
	for _, m := range o.world.machines.named("h") {
		now[m.GetName()] = m
		phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
		if phase == "Running" && !strings.HasPrefix(m.GetName(), o.cut) && status(m, string(clusterv1.MachineNodeHealthyCondition)) == "True" {
			running++
		}
	}
	left := 0
	for prefix, names := range o.victims {
		for _, name := range names {
			m := now[name]
			if _, seen := o.marked[name]; !seen && (m == nil || status(m, string(clusterv1.MachineHealthCheckSucceededCondition)) == "False") {
				o.marked[name] = since
			}
			if _, seen := o.gone[name]; !seen && m == nil {
				o.gone[name] = since
			}
			if m != nil && prefix != o.cut {
				left++
			}
		}
	}
	return fmt.Sprintf("%d Machines must be replaced, %d run", left, running), left == 0 && running == clusters*(1+workers)
}

// print prints the times and costs.
func (o *outage) print(out io.Writer, r row) {
	fmt.Fprintf(out, "%d Machines replaced in %.1f s. Found unhealthy after (50 %%, 99 %%, all) %s, deleted after %s; the timeout is %s\n",
		len(o.gone), r.Seconds, quantiles(o.marked), quantiles(o.gone), checkTimeout)
	fmt.Fprintf(out, "Per failed Machine: %.1f writes, %.1f reads, managers %.3f s CPU, API server %.3f s CPU\n",
		r.writesPerCluster(), r.Reads/float64(r.Clusters), r.ManagersCPU/float64(r.Clusters), r.ServerCPU/float64(r.Clusters))
	printDetail(out, r, 20)
}

func quantiles(times map[string]time.Duration) string {
	var all []time.Duration
	for _, t := range times {
		all = append(all, t)
	}
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("%s, %s, %s", at(0.5), at(0.99), at(1))
}

// violations returns an error if a Machine was remediated that should not have been.
func (o *outage) violations() error {
	dead := map[string]bool{}
	for _, names := range o.victims {
		for _, name := range names {
			dead[name] = true
		}
	}
	now := map[string]bool{}
	for _, m := range o.world.machines.named("h") {
		now[m.GetName()] = m.GetDeletionTimestamp() == nil
	}
	var errs []error
	for name := range o.before {
		if !now[name] && (!dead[name] || strings.HasPrefix(name, o.cut)) {
			errs = append(errs, fmt.Errorf("machine %s was remediated", name))
		}
	}
	return errors.Join(errs...)
}

// end restores the cluster that was cut off, and waits until its failed Machines are replaced, too.
func (o *outage) end(ctx context.Context, out io.Writer, workers int) error {
	for _, c := range o.world.clusters.named(o.cut) {
		if err := o.inject(ctx, c, map[string]any{"deadMachines": o.victims[o.cut]}); err != nil {
			return err
		}
	}
	begun := time.Now()
	if err := o.world.await(ctx, func() (string, bool) {
		left := slices.ContainsFunc(o.world.machines.named(o.cut), func(m *unstructured.Unstructured) bool {
			return slices.Contains(o.victims[o.cut], m.GetName())
		})
		return "Machines of the cluster that was cut off are marked for replacement", !left
	}); err != nil {
		return err
	}
	if err := o.world.awaitRunning(ctx, o.cut, 1+workers); err != nil {
		return err
	}
	fmt.Fprintf(out, "The cluster that was cut off: all replaced %.1f s after its return\n", time.Since(begun).Seconds())
	return nil
}

// status returns the status of a condition, or empty.
func status(o *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if one, _ := c.(map[string]any); one["type"] == kind {
			text, _ := one["status"].(string)
			return text
		}
	}
	return ""
}
