package execute

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

var errKilled = errors.New("killed")

// silent shows nothing.
type silent struct{}

func (silent) Infof(string, ...any)                 {}
func (silent) Warnf(string, ...any)                 {}
func (silent) Logf(int, string, ...any)             {}
func (silent) Lines(...string) func(string, string) { return func(string, string) {} }

// world is an API server, and what clusterctl wrote to it.
type world struct {
	t *testing.T
	client.WithWatch

	mu sync.Mutex
	// left is how many more writes succeed; negative: all.
	left    int
	writes  int
	created []string
}

func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), clusterctlv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, left: -1}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if !w.write() {
				return errKilled
			}
			// As the API server does with a CustomResourceDefinition.
			if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "CustomResourceDefinition" {
				u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			}
			err := c.Create(ctx, o, opts...)
			if err == nil {
				w.mu.Lock()
				w.created = append(w.created, fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()))
				w.mu.Unlock()
			}
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if !w.write() {
				return errKilled
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
	return w
}

// write reports whether the process that writes still lives.
func (w *world) write() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return false
	}
	w.left--
	w.writes++
	return true
}

// install does what init does.
func (w *world) install() error {
	w.t.Helper()
	base, err := filepath.Abs("../../clusterctl/command/root/testdata/repository")
	if err != nil {
		w.t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "secret", name == "TOY_TOKEN" }
	conf := config.Default(env)
	conf.Providers = []packages.Provider{
		{Name: clusterctlv1.ClusterAPIProviderName, Type: clusterctlv1.CoreProviderType, URL: base + "/cluster-api/v1.0.0/core-components.yaml"},
		{Name: packages.Kubeadm, Type: clusterctlv1.BootstrapProviderType, URL: base + "/bootstrap-kubeadm/v1.0.0/bootstrap-components.yaml"},
		{Name: packages.Kubeadm, Type: clusterctlv1.ControlPlaneProviderType, URL: base + "/control-plane-kubeadm/v1.0.0/control-plane-components.yaml"},
		{Name: "toy", Type: clusterctlv1.InfrastructureProviderType, URL: base + "/infrastructure-toy/v1.0.0/infrastructure-components.yaml"},
	}
	planner := &choose.InstallPlanner{
		Catalog: &catalog.Catalog{Config: conf, Store: repository.NewStore(repository.Options{})}, Client: w,
		Warn: func(problem error) { w.t.Error(problem) },
	}
	plan, err := planner.Plan(w.t.Context(), choose.InstallOptions{Selection: choose.Selection{Infrastructure: []string{"toy"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	i := &Installer{Display: silent{}, Client: w, Backoff: wait.Backoff{Duration: time.Millisecond, Steps: 3}}
	return i.Install(w.t.Context(), plan)
}

// TestCompletesAfterKill stops an installation after every number of writes and does it again.
func TestCompletesAfterKill(t *testing.T) {
	undisturbed := newWorld(t)
	if err := undisturbed.install(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(undisturbed.created)
	if undisturbed.writes < 12 {
		t.Fatalf("too few writes to interrupt: %v", undisturbed.created)
	}
	for n := range undisturbed.writes {
		w := newWorld(t)
		w.left = n
		if err := w.install(); !errors.Is(err, errKilled) {
			t.Fatalf("after %d writes it must be killed, but it ended with %v", n, err)
		}
		w.left = -1
		if err := w.install(); err != nil {
			t.Errorf("killed after %d writes, then: %v", n, err)
		}
		slices.Sort(w.created)
		if diff := cmp.Diff(undisturbed.created, w.created); diff != "" {
			t.Errorf("killed after %d writes: -undisturbed +completed:\n%s", n, diff)
		}
		if installed, err := inventory.Read(t.Context(), w); err != nil || len(installed) != 4 {
			t.Errorf("killed after %d writes: four providers must be recorded, got %v, %v", n, installed, err)
		}
	}
}

// warnings keeps what is warned of.
type warnings struct {
	silent
	texts []string
}

func (w *warnings) Warnf(format string, args ...any) {
	w.texts = append(w.texts, fmt.Sprintf(format, args...))
}

// TestWarnRefused: a provider that the cluster cannot run, such as capi, is not announced as if it were starting.
func TestWarnRefused(t *testing.T) {
	w := newWorld(t)
	plan := &choose.Installation{}
	for _, name := range []string{"refused", "starting"} {
		p := packages.Provider{Name: name, Type: clusterctlv1.InfrastructureProviderType}
		plan.Install = append(plan.Install, &components.Components{Provider: p, Version: "v1.0.0", TargetNamespace: name})
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "manager", Labels: map[string]string{"cluster.x-k8s.io/provider": p.ManifestLabel()}}}
		if name == "refused" {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "ProgressDeadlineExceeded", Message: "capi does not run containers"}}
		}
		if err := w.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	display := &warnings{}
	if err := (&Installer{Display: display, Client: w}).WarnRefused(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	want := []string{"infrastructure-refused does not run: capi does not run containers"}
	if diff := cmp.Diff(want, display.texts); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
