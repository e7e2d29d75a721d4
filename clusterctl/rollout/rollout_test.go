package rollout

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

var now = time.Date(2030, 1, 2, 12, 0, 0, 500, time.UTC)

func at(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t.Truncate(time.Second))) }

func md(change func(*clusterv1beta1.MachineDeployment)) *clusterv1beta1.MachineDeployment {
	d := &clusterv1beta1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md-uid"}}
	d.Spec.Selector.MatchLabels = map[string]string{"d": "md"}
	d.Spec.Template.Labels = map[string]string{"d": "md", "current": "yes"}
	d.Spec.Template.Spec.Version = ptr.To("v1.30.0")
	if change != nil {
		change(d)
	}
	return d
}

func kcp(annotations map[string]string) *controlplanev1beta1.KubeadmControlPlane {
	return &controlplanev1beta1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kcp", Annotations: annotations}}
}

// set returns a MachineSet of the MachineDeployment, for a revision and with a version of its own.
func set(name, revision, version, owner string) *clusterv1beta1.MachineSet {
	s := &clusterv1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Labels: map[string]string{"d": "md"}, Annotations: map[string]string{clusterv1beta1.RevisionAnnotation: revision},
		OwnerReferences: []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "md", UID: "md-uid", Controller: ptr.To(true)}},
	}}
	s.OwnerReferences[0].UID = "md-uid"
	if owner != "" {
		s.OwnerReferences[0].UID = "other"
	}
	s.Spec.Template.Labels = map[string]string{"d": "md", clusterv1beta1.MachineDeploymentUniqueLabel: name}
	s.Spec.Template.Spec.Version = ptr.To(version)
	return s
}

func sets() []client.Object {
	return []client.Object{
		set("a", "9", "v1.28.0", ""), set("b", "10", "v1.29.0", ""), set("c", "11", "v1.30.0", ""),
		set("foreign", "12", "v1.1.0", "other"), set("odd", "none", "v1.2.0", ""),
	}
}

// rollouts returns Rollouts over objects in memory, and the warnings.
func rollouts(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (*Rollouts, *[]string) {
	t.Helper()
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	r := New(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build(), "ns",
		func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) })
	r.Now, r.Backoff = func() time.Time { return now }, wait.Backoff{Steps: 4}
	return r, &warnings
}

func TestOperations(t *testing.T) {
	restart, pause, resume := (*Rollouts).Restart, (*Rollouts).Pause, (*Rollouts).Resume
	undo := func(to int64) func(*Rollouts, context.Context, Resource) error {
		return func(r *Rollouts, ctx context.Context, res Resource) error { return r.Undo(ctx, res, to) }
	}
	type outcome struct {
		Paused bool
		After  *metav1.Time
		// Labels and Version are of the MachineDeployment's template.
		Labels      map[string]string
		Version     string
		Annotations map[string]string
	}
	labels := map[string]string{"d": "md", "current": "yes"}
	original := map[string]string{"d": "md"}
	paused := func(d *clusterv1beta1.MachineDeployment) { d.Spec.Paused = true }
	after := func(when time.Time) func(*clusterv1beta1.MachineDeployment) {
		return func(d *clusterv1beta1.MachineDeployment) { d.Spec.RolloutAfter = at(when) }
	}
	other := map[string]string{"other": "x"}
	pausedKCP := map[string]string{"other": "x", clusterv1beta1.PausedAnnotation: ""}
	for _, tc := range []struct {
		reason    string
		object    client.Object
		operation func(*Rollouts, context.Context, Resource) error
		want      outcome
		err       string
	}{
		{"restart sets rolloutAfter to the next second", md(nil), restart, outcome{After: at(now.Add(time.Second)), Labels: labels, Version: "v1.30.0"}, ""},
		{"a past rollout does not prevent another", md(after(now.Add(-time.Hour))), restart, outcome{After: at(now.Add(time.Second)), Labels: labels, Version: "v1.30.0"}, ""},
		{"a scheduled rollout prevents restart", md(after(now.Add(time.Hour))), restart, outcome{After: at(now.Add(time.Hour)), Labels: labels, Version: "v1.30.0"}, "cannot restart machinedeployment/md in namespace ns: a rollout is already scheduled, by spec.rolloutAfter 2030-01-02T13:00:00Z"},
		{"a paused MachineDeployment cannot restart", md(paused), restart, outcome{Paused: true, Labels: labels, Version: "v1.30.0"}, "it is paused: run `clusterctl alpha rollout resume machinedeployment/md -n ns` first"},
		{"pause sets spec.paused", md(nil), pause, outcome{Paused: true, Labels: labels, Version: "v1.30.0"}, ""},
		{"pausing twice is an error", md(paused), pause, outcome{Paused: true, Labels: labels, Version: "v1.30.0"}, "cannot pause machinedeployment/md in namespace ns: it is already paused"},
		{"resume removes spec.paused", md(paused), resume, outcome{Labels: labels, Version: "v1.30.0"}, ""},
		{"resuming twice is an error", md(nil), resume, outcome{Labels: labels, Version: "v1.30.0"}, "it is not paused"},
		{"undo takes the second highest number, not text, without the label of the MachineSet", md(nil), undo(0), outcome{Labels: original, Version: "v1.29.0"}, ""},
		{"undo to a revision", md(nil), undo(9), outcome{Labels: original, Version: "v1.28.0"}, ""},
		{"MachineSets of others have no revisions of this one", md(nil), undo(12), outcome{Labels: labels, Version: "v1.30.0"}, "it has no revision 12: use --to-revision with one of 11, 10, 9"},
		{"a negative revision is an error", md(nil), undo(-1), outcome{Labels: labels, Version: "v1.30.0"}, "--to-revision is -1"},
		{"a paused MachineDeployment cannot be rolled back", md(paused), undo(0), outcome{Paused: true, Labels: labels, Version: "v1.30.0"}, "cannot undo machinedeployment/md in namespace ns: it is paused"},
		{"a first revision has no previous one", md(func(d *clusterv1beta1.MachineDeployment) { d.UID = "other" }), undo(0), outcome{Labels: labels, Version: "v1.30.0"}, "it has no earlier revision"},
		{"a control plane has rolloutAfter, too", kcp(other), restart, outcome{After: at(now.Add(time.Second)), Annotations: other}, ""},
		{"a paused control plane cannot restart", kcp(pausedKCP), restart, outcome{Paused: true, Annotations: pausedKCP}, "clusterctl alpha rollout resume kubeadmcontrolplane/kcp -n ns"},
		{"a control plane is paused by its annotation", kcp(other), pause, outcome{Paused: true, Annotations: map[string]string{"other": "x", clusterv1beta1.PausedAnnotation: "true"}}, ""},
		{"the annotation counts whatever its value", kcp(pausedKCP), pause, outcome{Paused: true, Annotations: pausedKCP}, "it is already paused"},
		{"resume removes the annotation only", kcp(pausedKCP), resume, outcome{Annotations: other}, ""},
		{"a control plane that is not paused cannot be resumed", kcp(other), resume, outcome{Annotations: other}, "it is not paused"},
		{"control planes have no revisions", kcp(other), undo(0), outcome{Annotations: other}, "only a machinedeployment has revisions"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			r, _ := rollouts(t, interceptor.Funcs{}, append(sets(), tc.object)...)
			res := Resource{MachineDeployment, "md"}
			if _, ok := tc.object.(*controlplanev1beta1.KubeadmControlPlane); ok {
				res = Resource{KubeadmControlPlane, "kcp"}
			}
			err := tc.operation(r, t.Context(), res)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("want error %q, got %v", tc.err, err)
			}
			s := res.subject()
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(tc.object), s.object()); err != nil {
				t.Fatal(err)
			}
			got := outcome{Paused: s.isPaused(), After: s.rolloutAfter(), Annotations: s.GetAnnotations()}
			if d, ok := s.(*deployment); ok {
				got.Labels, got.Version = d.Spec.Template.Labels, *d.Spec.Template.Spec.Version
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The rules hold for the object that is changed: a change in between is read, and checked again.
func TestConcurrentChanges(t *testing.T) {
	attempts := 0
	r, _ := rollouts(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if attempts++; attempts == 1 {
			live := md(nil)
			if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return err
			}
			live.Spec.Paused = true
			if err := c.Update(ctx, live); err != nil {
				return err
			}
		}
		return c.Patch(ctx, o, p, opts...)
	}}, md(nil))
	err := r.Restart(t.Context(), Resource{MachineDeployment, "md"})
	if err == nil || !strings.Contains(err.Error(), "it is paused") || attempts != 1 {
		t.Errorf("a MachineDeployment that was paused meanwhile must not be restarted, got %v after %d patches", err, attempts)
	}

	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "machinedeployments"}, "md", fmt.Errorf("changed"))
	patches := 0
	r, _ = rollouts(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		patches++
		return conflict
	}}, md(nil))
	err = r.Pause(t.Context(), Resource{MachineDeployment, "md"})
	if err == nil || !strings.Contains(err.Error(), "it changed during every attempt: run the command again") || patches != 4 {
		t.Errorf("conflicts must be retried a few times, got %v after %d patches", err, patches)
	}
}

func TestUndoWarnsAboutTopologies(t *testing.T) {
	r, warnings := rollouts(t, interceptor.Funcs{}, append(sets(), md(func(d *clusterv1beta1.MachineDeployment) {
		d.Labels, d.Spec.ClusterName = map[string]string{clusterv1beta1.ClusterTopologyOwnedLabel: ""}, "c1"
	}))...)
	if err := r.Undo(t.Context(), Resource{MachineDeployment, "md"}, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"The template of machinedeployment/md is set by the topology of Cluster c1, which reverts the rollback: change the Cluster or its ClusterClass instead"}
	if diff := cmp.Diff(want, *warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	r, _ := rollouts(t, interceptor.Funcs{})
	err := r.Pause(t.Context(), Resource{KubeadmControlPlane, "kcp"})
	const want = "cannot pause kubeadmcontrolplane/kcp: it does not exist in namespace ns: see `kubectl get kubeadmcontrolplanes -n ns`, and set its namespace with --namespace"
	if err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		reason, in string
		want       Resource
		err        string
	}{
		{"the documented form", "machinedeployment/a", Resource{MachineDeployment, "a"}, ""},
		{"the case of types does not matter", "KubeadmControlPlane/a", Resource{KubeadmControlPlane, "a"}, ""},
		{"a type alone", "machinedeployment", Resource{}, "does not have the form type/name: use machinedeployment/{name} or kubeadmcontrolplane/{name}"},
		{"no name", "machinedeployment/", Resource{}, "does not have the form"},
		{"no type", "/a", Resource{}, "does not have the form"},
		{"three parts", "machinedeployment/a/b", Resource{}, "does not have the form"},
		{"another type", "machineset/a", Resource{}, `has the type "machineset", which is not supported`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := Parse(tc.in, Types())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("want error %q, got %v", tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
