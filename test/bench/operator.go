package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"sigs.k8s.io/cluster-api/test/managers"
)

const (
	// operatorRow is the name of the operator's figure in the baseline.
	operatorRow = "operator, six providers"
	// operatorIdle is how long an idle operator is observed, and operatorGlance in the table.
	operatorIdle, operatorGlance = time.Minute, 20 * time.Second
	// operatorSettled is how long after an installation the operator compares what managers have added to their objects, such as CA
	// bundles, with some reserve: it is a part of the installation.
	operatorSettled = 20 * time.Second
)

// installation is what the installation of all providers costs the operator, and what the operator costs afterwards.
type installation struct {
	requests
	cpu     float64
	elapsed time.Duration
	idle    requests
	idleFor time.Duration
	idleCPU float64
	// memory is the operator's resident memory while it is idle, of which program is what Linux can drop. In KiB.
	memory, program int
}

// operate measures the operator several times, each with a new management cluster, and prints a table.
func operate(ctx context.Context, out io.Writer, o options) error {
	var all []installation
	for i := range o.operator {
		idle := operatorGlance
		if i == o.operator-1 {
			idle = cmp.Or(o.idle, operatorIdle)
		}
		one, err := measureOperator(ctx, o, idle)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	printInstallations(out, all, o.detail)
	return all[len(all)-1].calm()
}

func printInstallations(out io.Writer, all []installation, detail int) {
	last := all[len(all)-1]
	fmt.Fprintln(out,
		"| operator, six providers | reads | writes | operator CPU | shortest time | median | longest |\n|---|---|---|---|---|---|---|")
	byTime := slices.SortedFunc(slices.Values(all), func(a, b installation) int { return cmp.Compare(a.elapsed, b.elapsed) })
	fmt.Fprintf(out, "| applied, until all are Ready | %d | %d | %.1f s | %.1f s | %.1f s | %.1f s |\n", last.reads, last.writes, last.cpu,
		byTime[0].elapsed.Seconds(), byTime[len(byTime)/2].elapsed.Seconds(), byTime[len(byTime)-1].elapsed.Seconds())
	fmt.Fprintf(out, "Idle: %d requests within %s, %.3f cores, memory %d MiB, of it %d MiB the program\n",
		last.idle.reads+last.idle.writes, last.idleFor, last.idleCPU/last.idleFor.Seconds(), (last.memory+last.program)/1024, last.program/1024)
	last.print(out, detail)
}

// calm returns an error if the operator made requests while nothing changed.
func (i *installation) calm() error {
	if n := i.idle.reads + i.idle.writes; n > 0 {
		var text strings.Builder
		i.idle.print(&text, n)
		return fmt.Errorf("the operator made %d requests within %s in which nothing changed, want none:\n%s", n, i.idleFor, &text)
	}
	return nil
}

// measureOperator starts an empty management cluster that runs providers itself, with the operator as a process of its own, declares all
// providers at once, and then leaves it alone for a while.
func measureOperator(ctx context.Context, o options, idle time.Duration) (result installation, err error) {
	if o.keep != "" {
		if err := os.MkdirAll(o.keep, 0o700); err != nil {
			return installation{}, err
		}
	}
	dir, err := os.MkdirTemp(o.keep, "bench-operator-")
	if err != nil {
		return installation{}, err
	}
	w, err := startOperator(ctx, o.root, dir)
	if err != nil {
		return installation{}, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	return w.installAll(ctx, idle)
}

// startOperator returns a world whose only manager is the operator.
func startOperator(ctx context.Context, root, dir string) (*world, error) {
	server, err := managers.StartServer(ctx, managers.Options{
		Root: root, Dir: dir, Components: true, AuditLog: filepath.Join(dir, "audit.log"),
	})
	if err != nil {
		return nil, err
	}
	w := &world{Server: server}
	err = managers.Release(ctx, root, filepath.Join(dir, "repository"))
	if err == nil {
		err = w.launchOperator(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (logs are in %s)", err, dir), w.stop())
	}
	return w, nil
}

// launchOperator starts the operator with leader election, as it is deployed.
func (w *world) launchOperator(ctx context.Context) error {
	m, err := managers.NewManager(w.Root, w.Dir, "operator", managers.Operator(), w.Kubeconfig)
	if err != nil {
		return err
	}
	m.Namespace, m.Args = "capi-operator-system", []string{"--leader-elect"}
	namespace := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": m.Namespace}},
	}
	if err := w.Client.Create(ctx, namespace); err != nil {
		return err
	}
	return w.launch(ctx, m)
}

// installAll declares all providers, and measures until all are ready, and while nothing changes.
func (w *world) installAll(ctx context.Context, idle time.Duration) (installation, error) {
	providers, err := w.declarations()
	if err != nil {
		return installation{}, err
	}
	// What the operator requests at its start is not part of the installation.
	if err := pause(ctx, aftermath); err != nil {
		return installation{}, err
	}
	watched, err := w.watchProviders(ctx, providers)
	if err != nil {
		return installation{}, err
	}
	pid := w.managers[0].Running.PID()
	m, err := w.operatorMeter()
	if err != nil {
		return installation{}, err
	}
	begun := time.Now()
	for _, o := range providers {
		if err := w.Client.Create(ctx, o); err != nil {
			return installation{}, fmt.Errorf("creating %s %s: %w; logs are in %s", o.GetKind(), o.GetName(), err, w.Dir)
		}
	}
	if err := w.await(ctx, allReady(watched)); err != nil {
		return installation{}, err
	}
	i := installation{elapsed: time.Since(begun), idleFor: idle}
	if err := pause(ctx, operatorSettled); err != nil {
		return i, err
	}
	if i.requests, i.cpu, err = m.since(); err != nil {
		return i, err
	}
	if m, err = w.operatorMeter(); err != nil {
		return i, err
	}
	if err := pause(ctx, idle); err != nil {
		return i, err
	}
	i.program, i.memory = resident(pid)
	i.idle, i.idleCPU, err = m.since()
	return i, err
}

// operatorMeter is what the operator had cost when it started.
type operatorMeter struct {
	world    *world
	requests requests
	cpu      float64
}

func (w *world) operatorMeter() (*operatorMeter, error) {
	n, err := readRequests(w.AuditLog, managers.Operator().Name+"/")
	return &operatorMeter{world: w, requests: n, cpu: cpuOf(w.managers[0].Running.PID())}, err
}

// since returns the cost since the meter started.
func (m *operatorMeter) since() (requests, float64, error) {
	now, err := m.world.operatorMeter()
	if err != nil {
		return requests{}, 0, err
	}
	return now.requests.minus(m.requests), now.cpu - m.cpu, nil
}

// declarations returns a Namespace and an object for each provider, as one file would declare them.
func (w *world) declarations() ([]*unstructured.Unstructured, error) {
	var text strings.Builder
	for _, p := range []struct{ kind, name, namespace, label, file, features string }{
		{"CoreProvider", "cluster-api", "capi-system", "cluster-api", "core", "ClusterTopology: true"},
		{"BootstrapProvider", "kubeadm", "capi-kubeadm-bootstrap-system", "bootstrap-kubeadm", "bootstrap", ""},
		{
			"ControlPlaneProvider", "kubeadm", "capi-kubeadm-control-plane-system",
			"control-plane-kubeadm", "control-plane", "ClusterTopology: true",
		},
		{"InfrastructureProvider", "in-memory", "capim-system", "infrastructure-in-memory", "infrastructure", ""},
		{"IPAMProvider", "in-cluster", "capi-ipam-in-cluster-system", "ipam-in-cluster", "ipam", ""},
		{"RuntimeExtensionProvider", "test", "test-extension-system", "runtime-extension-test", "runtime-extension", ""},
	} {
		found, err := filepath.Glob(filepath.Join(w.Dir, "repository", p.label, "v*", p.file+"-components*.yaml"))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("the release of %s has the components %v, want one file: %w", p.label, found, err)
		}
		fmt.Fprintf(&text, `apiVersion: v1
kind: Namespace
metadata: {name: %[3]s}
---
apiVersion: operator.cluster.x-k8s.io/v1alpha2
kind: %[1]s
metadata: {name: %[2]s, namespace: %[3]s}
spec:
  fetchConfig: {url: %[4]s}
  manager: {featureGates: {%[5]s}}
---
`, p.kind, p.name, p.namespace, filepath.Join(filepath.Dir(filepath.Dir(found[0])), "latest", filepath.Base(found[0])), p.features)
	}
	file := filepath.Join(w.Dir, "providers.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	return managers.ReadObjects(file)
}

// watchProviders watches the kinds of provider objects.
func (w *world) watchProviders(ctx context.Context, providers []*unstructured.Unstructured) ([]objects, error) {
	c, err := dynamic.NewForConfig(w.Config)
	if err != nil {
		return nil, err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return nil, err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	var watched []objects
	for _, o := range providers {
		kind := o.GroupVersionKind()
		if kind.Group != "" {
			resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
			watched = append(watched, objects{factory.ForResource(resource).Informer().GetStore()})
		}
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, errors.New("the watch of " + resource.Resource + " did not start")
		}
	}
	return watched, nil
}

// allReady is a condition for await: there is an object of every kind, and it is ready.
func allReady(watched []objects) func() (string, bool) {
	return func() (string, bool) {
		ready := 0
		for _, kind := range watched {
			for _, o := range kind.named("") {
				if status(o, "Ready") == "True" {
					ready++
				}
			}
		}
		return fmt.Sprintf("%d of %d providers are Ready", ready, len(watched)), ready == len(watched)
	}
}
