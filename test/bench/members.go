package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/managers"
)

const (
	// realCluster is the name of the cluster in docker.yaml.
	realCluster = "real"
	// undisturbed is for how long members are measured without a backup.
	undisturbed = 20 * time.Second
	// writeInterval is the time between two writes through the API server.
	writeInterval = 20 * time.Millisecond
)

// backupOfMembers prints what one backup of a cluster with a real etcd costs: the fleet manager, the members, and others that write.
func (w *world) backupOfMembers(ctx context.Context, out io.Writer, o options) (err error) {
	if err := w.createReal(ctx, o.docker); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.deleteReal(ctx)) }()
	if err := w.fill(ctx, realCluster, o.backupSize); err != nil {
		return err
	}
	workload, err := w.workload(ctx, realCluster)
	if err != nil {
		return err
	}
	writing := write(ctx, workload)
	defer writing.end()
	if err := pause(ctx, undisturbed); err != nil { // what the content has caused
		return err
	}
	return w.measureMembers(ctx, out, o.verification, writing)
}

// measureMembers measures members without a backup, and then with one.
func (w *world) measureMembers(ctx context.Context, out io.Writer, verification string, writing *writing) error {
	var names []string
	for _, m := range w.machines.named(realCluster) {
		names = append(names, m.GetName())
	}
	slices.Sort(names)
	first, err := members(ctx, names)
	if err == nil {
		err = pause(ctx, undisturbed)
	}
	if err != nil {
		return err
	}
	before, err := members(ctx, names)
	if err != nil {
		return err
	}
	var after []member
	b, err := w.backedUp(ctx, out, realCluster, verification, func() error {
		after, err = members(ctx, names)
		return err
	})
	if err != nil {
		return err
	}
	for i := range names {
		before[i].print(out, names[i], "quiet", first[i], undisturbed)
		after[i].print(out, names[i], "until it was stored", before[i], b.stored)
	}
	writing.print(out, "quiet", b.began.Add(-undisturbed), b.began)
	writing.print(out, "until it was stored", b.began, b.began.Add(b.stored))
	writing.print(out, "until it was verified", b.began.Add(b.stored), b.began.Add(b.verified))
	return nil
}

// createReal creates the cluster in docker.yaml, with this many machines.
func (w *world) createReal(ctx context.Context, machines int) error {
	objects, err := managers.ReadObjects(filepath.Join(w.Root, "test", "bench", "docker.yaml"))
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace("default")
		if o.GetKind() == "KubeadmControlPlane" {
			err = unstructured.SetNestedField(o.Object, int64(machines), "spec", "replicas")
		}
		if err := errors.Join(err, w.create(ctx, o)); err != nil {
			return err
		}
	}
	return w.awaitRunning(ctx, realCluster, machines)
}

func (w *world) deleteReal(ctx context.Context) error {
	cluster := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}}
	cluster.SetNamespace("default")
	cluster.SetName(realCluster)
	if err := w.Client.Delete(ctx, cluster); err != nil {
		return err
	}
	return w.await(ctx, func() (string, bool) {
		left := len(w.clusters.named(realCluster))
		return fmt.Sprintf("%d Clusters are left", left), left == 0
	})
}

// member are metrics of an etcd.
type member struct {
	cpu, memory    float64
	commits, syncs *dto.Histogram
}

// members reads the metrics of etcd on these machines.
func members(ctx context.Context, names []string) ([]member, error) {
	found := make([]member, 0, len(names))
	for _, name := range names {
		raw, err := exec.CommandContext(ctx, "docker", "exec", name, "curl", "--silent", "--fail", "http://127.0.0.1:2381/metrics").Output()
		if err != nil {
			return nil, fmt.Errorf("the metrics of etcd in container %s: %w", name, err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		m := member{}
		for name, into := range map[string]*float64{"process_cpu_seconds_total": &m.cpu, "process_resident_memory_bytes": &m.memory} {
			for _, one := range families[name].GetMetric() {
				*into = one.GetCounter().GetValue() + one.GetGauge().GetValue()
			}
		}
		for name, into := range map[string]**dto.Histogram{
			"etcd_disk_backend_commit_duration_seconds": &m.commits, "etcd_disk_wal_fsync_duration_seconds": &m.syncs,
		} {
			for _, one := range families[name].GetMetric() {
				*into = one.GetHistogram()
			}
		}
		found = append(found, m)
	}
	return found, nil
}

func (m member) print(out io.Writer, name, when string, since member, duration time.Duration) {
	fmt.Fprintf(out, "etcd of %s, %s (%.1f s): %.2f s of CPU, memory %.0f MiB; commits %s; syncs of the log %s\n",
		name, when, duration.Seconds(), m.cpu-since.cpu, m.memory/(1<<20),
		distribution(since.commits, m.commits), distribution(since.syncs, m.syncs))
}

// distribution describes what a histogram has counted between two times. Of quantiles, the upper bound of the bucket is known.
func distribution(from, to *dto.Histogram) string {
	n := to.GetSampleCount() - from.GetSampleCount()
	if n == 0 {
		return "none"
	}
	mean := (to.GetSampleSum() - from.GetSampleSum()) / float64(n)
	below := func(quantile float64) float64 {
		for i, b := range to.GetBucket() {
			if float64(b.GetCumulativeCount()-from.GetBucket()[i].GetCumulativeCount()) >= quantile*float64(n) {
				return b.GetUpperBound() * 1000
			}
		}
		return 0
	}
	return fmt.Sprintf("%d, mean %.1f ms, 99 %% below %.0f ms", n, mean*1000, below(0.99))
}

// writing is a client that writes all the time.
type writing struct {
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	writes []written
}

type written struct {
	began time.Time
	took  time.Duration
	err   error
}

// write changes an object over and over, until it is ended.
func write(ctx context.Context, workload client.Client) *writing {
	ctx, stop := context.WithCancel(ctx)
	w := &writing{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for n := 0; pause(ctx, writeInterval) == nil; n++ {
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "written"}, Data: map[string]string{"n": strconv.Itoa(n)},
			}
			began := time.Now()
			var err error
			if n == 0 {
				err = workload.Create(ctx, object)
			} else {
				err = workload.Update(ctx, object)
			}
			w.mu.Lock()
			w.writes = append(w.writes, written{began: began, took: time.Since(began), err: err})
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *writing) end() {
	w.stop()
	<-w.done
}

func (w *writing) print(out io.Writer, when string, from, to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var took []time.Duration
	failed := 0
	for _, one := range w.writes {
		if one.began.Before(from) || one.began.After(to) {
			continue
		}
		took = append(took, one.took)
		if one.err != nil {
			failed++
		}
	}
	if len(took) == 0 {
		fmt.Fprintf(out, "writes through the API server, %s: none\n", when)
		return
	}
	slices.Sort(took)
	at := func(quantile float64) float64 { return took[int(quantile*float64(len(took)-1))].Seconds() * 1000 }
	fmt.Fprintf(out, "writes through the API server, %s: %d, %d failed; median %.0f ms, 99 %% below %.0f ms, longest %.0f ms\n",
		when, len(took), failed, at(0.5), at(0.99), at(1))
}
