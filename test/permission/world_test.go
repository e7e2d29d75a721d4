package permission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/managers"
)

// conditionTimeout is how long a condition may take to become true: many times what it takes on an idle machine.
const conditionTimeout = 5 * time.Minute

// world is an API server with an audit log, and the managers.
type world struct {
	*managers.Server
	t         *testing.T
	recorder  *history.Recorder
	managers  []component
	namespace string
	// extended is true if there is an ExtensionConfig: the metrics of extensions exist after the first call.
	extended bool
	// connected is true if managers are connected to a workload cluster.
	connected bool
}

// component is a manager and its connection.
type component struct {
	*managers.Manager
	connection  managers.Connection
	diagnostics string // the address for metrics
}

// start starts an API server and managers, as in a release.
func start(t *testing.T, programs ...managers.Program) *world {
	t.Helper()
	w := newWorld(t)
	for _, p := range programs {
		if err := w.run(t.Context(), p); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
	w.observe()
	return w
}

// newWorld starts an API server. Without the programs that `make bin/capi managers` builds, it skips the test, except in CI.
func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "bin", managers.Programs()[0].Name)); err != nil && os.Getenv("CI") == "" && os.Getenv("CAPI_REQUIRE_ENV") == "" {
		t.Skipf("the programs are required: run make bin/capi managers: %v", err)
	}
	dir := t.TempDir()
	server, err := managers.StartServer(t.Context(), managers.Options{
		Root: root, Dir: filepath.Join(dir, "server"), Accounts: true, AuditLog: filepath.Join(dir, "audit.log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Server: server, t: t, namespace: "walk"}
	t.Cleanup(func() {
		if err := errors.Join(w.stopManagers(), server.Stop()); err != nil {
			t.Error(err)
		}
		w.logs()
	})
	return w
}

// observe records the history of all objects, once their definitions are installed.
func (w *world) observe() {
	w.t.Helper()
	err := w.AwaitDefinitions(w.t.Context())
	if err == nil {
		w.recorder, err = history.Record(w.t.Context(), w.Config)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// run starts a manager as in a release: with leader election, a self-issued webhook certificate, and authorization for
// metrics.
func (w *world) run(ctx context.Context, p managers.Program) error {
	connection, err := w.Connection(ctx, p)
	if err != nil {
		return err
	}
	m, err := managers.NewManager(w.Root, w.Dir, p.Name, p, connection.Kubeconfig)
	if err != nil {
		return err
	}
	diagnostics, err := freeAddress()
	if err != nil {
		return err
	}
	m.Namespace = connection.Namespace
	if p.Component == "core" || p.Component == "control-plane-kubeadm" {
		m.Gates += ",RuntimeSDK=true,InPlaceUpdates=true"
	}
	m.Args = []string{
		fmt.Sprintf("--leader-elect=%t", !p.WithoutLeader), "--webhook-cert-dir=" + filepath.Join(w.Dir, "none"),
		"--insecure-diagnostics=false", "--diagnostics-address=" + diagnostics,
	}
	switch p.Component {
	case "infrastructure-in-memory":
		m.Args = append(m.Args, "--debug-address=")
	case "fleet":
		m.Args = append(m.Args, "--data-dir="+filepath.Join(w.Dir, "backups"), "--serve-address=127.0.0.1:0")
	}
	objects, err := w.Released(ctx, p)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := w.install(ctx, o, m.WebhookPort); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	w.managers = append(w.managers, component{Manager: m, connection: connection, diagnostics: diagnostics})
	return m.Start()
}

// install creates what a release has besides RBAC. There is no network of Pods: the webhook Service is a name for this
// machine.
func (w *world) install(ctx context.Context, o *unstructured.Unstructured, port int) error {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		service := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
		if _, converts, _ := unstructured.NestedMap(o.Object, service...); converts {
			if err := unstructured.SetNestedField(o.Object, int64(port), append(service, "port")...); err != nil {
				return err
			}
		}
	case "Service":
		o.Object["spec"] = map[string]any{
			"type": "ExternalName", "externalName": "localhost", "ports": []any{map[string]any{"port": int64(port)}},
		}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, webhook := range webhooks {
			if err := unstructured.SetNestedField(webhook.(map[string]any), int64(port), "clientConfig", "service", "port"); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"); err != nil {
			return err
		}
	default:
		return nil
	}
	return w.Client.Create(ctx, o)
}

// stopManagers stops all managers, as a rollout of their Deployments does.
func (w *world) stopManagers() error {
	var errs []error
	for _, m := range w.managers {
		errs = append(errs, m.Stop())
	}
	return errors.Join(errs...)
}

// logs prints the ends of the managers' logs if the test has failed.
func (w *world) logs() {
	if !w.t.Failed() {
		return
	}
	for _, m := range w.managers {
		raw, err := os.ReadFile(m.Log)
		if err != nil {
			w.t.Log(err)
			continue
		}
		w.t.Logf("end of the log of %s:\n%s", m.Name, raw[max(0, len(raw)-4000):])
	}
}

// waitFor waits until a condition is true in the namespace.
func (w *world) waitFor(what string, condition scenario.Condition) {
	w.t.Helper()
	deadline := time.After(conditionTimeout)
	for {
		now, changed := w.recorder.Now(w.namespace)
		err := condition(now)
		if err == nil {
			return
		}
		if broken := w.recorder.Err(); broken != nil {
			w.t.Fatalf("%s: %v", what, broken)
		}
		select {
		case <-changed:
		case <-deadline:
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

// do makes a change, and retries it until it succeeds, for example after conflicts.
func (w *world) do(what string, change scenario.Change) {
	w.t.Helper()
	now, _ := w.recorder.Now(w.namespace)
	target := scenario.Target{Client: w.Client, Namespace: w.namespace, Start: now}
	w.t.Log(what)
	w.eventually(what, func(ctx context.Context) error { return change(ctx, target) })
}

func (w *world) eventually(what string, f func(ctx context.Context) error) {
	w.t.Helper()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	deadline := time.After(conditionTimeout)
	for {
		err := f(w.t.Context())
		if err == nil {
			return
		}
		select {
		case <-ticks.C:
		case <-deadline:
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)), nil
}
