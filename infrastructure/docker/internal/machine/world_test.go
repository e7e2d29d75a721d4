package machine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/job"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/testenv"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	image     = "kindest/node:v1.36.3"
	container = "c-m"
)

// world is a management cluster, a workload cluster, a container runtime, and a controller, which can be killed.
type world struct {
	client.Client
	*Controller
	runtime  *enginetest.Fake
	clock    *testclock.FakePassiveClock
	recorder *record.FakeRecorder
	runner   *step.Runner[*dockerv1.DockerMachine]
	// nodes is the workload cluster; away is the error of connections to it.
	nodes client.Client
	away  error
	// stale, if not nil, is the object that the cache has.
	stale *dockerv1.DockerMachine

	lock sync.Mutex
	// requests are the requests to both API servers; writes those that change something.
	requests, writes []string
	// killAt is after how many calls and requests the process is killed: before the last one has an effect, or after. Zero: never.
	killAt     int
	killBefore bool
	count      int
	dead       bool
	// attempts are the attempts to bootstrap in each container.
	attempts map[string]*attempts
	// outcome is the result of an attempt: exit code, whether kubeadm succeeded, failed step and log.
	outcome func(number int) (code int, reached bool, step, log string)
}

// attempts is what a container remembers.
type attempts struct {
	number int
	result string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		runtime: enginetest.New(), clock: testclock.NewFakePassiveClock(now), recorder: record.NewFakeRecorder(50),
		attempts: map[string]*attempts{},
		outcome:  func(int) (int, bool, string, string) { return 0, true, "", "" },
	}
	scheme := testenv.Scheme(t, dockerv1.AddToScheme)
	index := indexes()[0]
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&dockerv1.DockerMachine{}).
		WithIndex(index.Object, index.Field, index.Values).WithInterceptorFuncs(w.intercepted("")).Build()
	w.nodes = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(w.intercepted("workload ")).Build()
	w.runtime.Fail = func(call, _ string) error { return w.interrupted(call, false) }
	w.runtime.KillAfter = func(call, _ string) bool { return w.interrupted(call, true) != nil }
	w.runtime.OnExec = w.exec
	w.restart(t)
	return w
}

// restart starts a new process.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.settle()
	w.lock.Lock()
	w.dead, w.killAt, w.count = false, 0, 0
	w.lock.Unlock()
	w.Controller = &Controller{
		Outside: step.Outside{Client: cached{w.Client, w}, Live: w.Client, Recorder: w.recorder, Clock: w.clock},
		engine:  w.runtime, workloads: w, jobs: job.New(w.clock), pools: true,
	}
	w.runner = w.declared().Runner(w.Outside)
}

// settle waits for all jobs of the process.
func (w *world) settle() {
	if w.Controller != nil {
		w.jobs.Wait()
	}
}

// interrupted kills the process at the chosen call: the process does nothing any more. after is whether the call had its effect.
func (w *world) interrupted(call string, after bool) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !after && !w.dead {
		w.count++
	}
	if !w.dead && w.killAt > 0 && w.count == w.killAt && w.killBefore != after {
		w.dead = true
	}
	if w.dead {
		return fmt.Errorf("%s: %w", call, enginetest.ErrKilled)
	}
	return nil
}

// Get implements Workloads.
func (w *world) Get(context.Context, types.NamespacedName) (*remote.Cluster, error) {
	if w.away != nil {
		return nil, w.away
	}
	return &remote.Cluster{Client: w.nodes}, nil
}

// cached is the client with the cache.
type cached struct {
	client.Client
	world *world
}

// Get implements client.Client.
func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m, ok := obj.(*dockerv1.DockerMachine); ok && c.world.stale != nil {
		c.world.stale.DeepCopyInto(m)
		return nil
	}
	return c.world.Client.Get(context.WithValue(ctx, fromCache{}, true), key, obj, opts...)
}

// fromCache marks reads that cost nothing.
type fromCache struct{}

func (w *world) intercepted(where string) interceptor.Funcs {
	request := func(what string, write bool, do func() error) error {
		w.lock.Lock()
		w.requests = append(w.requests, where+what)
		if write {
			w.writes = append(w.writes, where+what)
		}
		w.lock.Unlock()
		if err := w.interrupted(what, false); err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
		return w.interrupted(what, true)
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			if ctx.Value(fromCache{}) != nil || where != "" {
				return c.Get(ctx, key, obj, o...)
			}
			return request(fmt.Sprintf("get %T", obj), false, func() error { return c.Get(ctx, key, obj, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			return request("patch "+obj.GetName(), true, func() error { return c.Patch(ctx, obj, p, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			return request("patch "+sub+" "+obj.GetName(), true, func() error { return c.SubResource(sub).Patch(ctx, obj, p, o...) })
		},
	}
}

// exec runs commands in containers: the runner of package bootstrap, whose contract is tested there, and the import of images.
func (w *world) exec(name string, c engine.Command) error {
	if len(c.Args) < 7 || c.Args[3] != "bootstrap" {
		if c.Args[0] == "test" {
			return &engine.ExitError{Container: name, Program: "test", Code: 1}
		}
		if c.Stdin != nil {
			_, err := io.Copy(io.Discard, c.Stdin)
			return err
		}
		return nil
	}
	if _, err := io.Copy(io.Discard, c.Stdin); err != nil {
		return err
	}
	want, err := strconv.Atoi(c.Args[4])
	if err != nil {
		return err
	}
	created := 0
	for _, call := range w.runtime.Calls() {
		if call == "Create "+name {
			created++
		}
	}
	id := fmt.Sprint(name, created)
	w.lock.Lock()
	defer w.lock.Unlock()
	a := w.attempts[id]
	if a == nil {
		a = &attempts{}
		w.attempts[id] = a
	}
	if a.number < want {
		a.number++
		code, reached, failed, log := w.outcome(a.number)
		a.result = fmt.Sprintf("%d\n%d\n%s\n%s\n%s", a.number, code, map[bool]string{true: "yes", false: "no"}[reached], failed, log)
	}
	_, err = io.WriteString(c.Stdout, a.result)
	return err
}

// reconcile reconciles once.
func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "m"}})
}

// run reconciles, as events would, until nothing changes any more.
func (w *world) run(t *testing.T) (last ctrl.Result, err error) {
	t.Helper()
	for range 20 {
		before := w.state()
		last, err = w.reconcile(t)
		w.settle()
		if err != nil || before == w.state() {
			return last, err
		}
	}
	t.Fatal("the machine does not settle")
	return last, err
}

// state is what changes until the controller waits for something else.
func (w *world) state() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return fmt.Sprint(len(w.writes), w.changing())
}

func (w *world) must(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := w.run(t)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *world) read(t *testing.T) *dockerv1.DockerMachine {
	t.Helper()
	obj := &dockerv1.DockerMachine{}
	if err := w.Client.Get(context.WithValue(t.Context(), fromCache{}, true), types.NamespacedName{Namespace: "default", Name: "m"}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func (w *world) gone(t *testing.T) bool {
	t.Helper()
	err := w.Client.Get(context.WithValue(t.Context(), fromCache{}, true), types.NamespacedName{Namespace: "default", Name: "m"}, &dockerv1.DockerMachine{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

// change changes the object as another client.
func (w *world) change(t *testing.T, f func(*dockerv1.DockerMachine)) {
	t.Helper()
	obj := w.read(t)
	f(obj)
	status := obj.DeepCopy()
	if err := w.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	status.ResourceVersion = obj.ResourceVersion
	if err := w.Client.Status().Update(t.Context(), status); err != nil {
		t.Fatal(err)
	}
}

// joined creates the Node, as kubelet does.
func (w *world) joined(t *testing.T, with ...func(*corev1.Node)) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: container}}
	for _, f := range with {
		f(n)
	}
	if err := w.nodes.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func (w *world) node(t *testing.T) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	if err := w.nodes.Get(t.Context(), types.NamespacedName{Name: container}, n); err != nil {
		t.Fatal(err)
	}
	return n
}

// events returns the events since the last call.
func (w *world) events() []string {
	var out []string
	for {
		select {
		case e := <-w.recorder.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// changing returns the calls of the container runtime that change something.
func (w *world) changing() []string {
	return slices.DeleteFunc(w.runtime.Calls(), func(call string) bool {
		return strings.HasPrefix(call, "Inspect") || strings.HasPrefix(call, "List")
	})
}

func newCluster(with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "cluster-uid"},
		Status:     clusterv1.ClusterStatus{InfrastructureReady: true},
	}
	for _, f := range with {
		f(c)
	}
	return c
}

func newData() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Data: map[string][]byte{"value": []byte("#cloud-config\nruncmd: [kubeadm join]\n")}}
}

// objects returns a Cluster, bootstrap data, a Machine and its DockerMachine.
func objects(with ...func(*clusterv1.Machine, *dockerv1.DockerMachine)) []client.Object {
	labels := func() map[string]string { return map[string]string{clusterv1.ClusterNameLabel: "c"} }
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "machine-uid", Labels: labels()},
		Spec:       clusterv1.MachineSpec{ClusterName: "c", Version: ptr.To("v1.36.3"), Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")}},
	}
	m := &dockerv1.DockerMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "m", UID: "infra-uid", Labels: labels(), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "m", UID: "machine-uid", Controller: ptr.To(true)}},
	}}
	for _, f := range with {
		f(owner, m)
	}
	return []client.Object{newCluster(), newData(), owner, m}
}

func controlPlane(owner *clusterv1.Machine, m *dockerv1.DockerMachine) {
	owner.Labels[clusterv1.MachineControlPlaneLabel] = ""
	m.Labels[clusterv1.MachineControlPlaneLabel] = ""
}

// states returns an object's conditions in short form.
func states(obj *dockerv1.DockerMachine) map[clusterv1.ConditionType]string {
	out := map[clusterv1.ConditionType]string{}
	for _, c := range obj.Status.Conditions {
		out[c.Type] = string(c.Status)
		if c.Reason != "" {
			out[c.Type] += " " + string(c.Severity) + " " + c.Reason
		}
		if c.Message != "" {
			out[c.Type] += ": " + c.Message
		}
	}
	return out
}
