package journey

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestProvidersChangeWhileWebhooksAnswer changes the arguments of all providers, upgrades them to a version that does not start,
// which is rolled back, and to one that does. All the while, webhooks answer, and a Cluster keeps its Machines.
//
// TestOperatorAdoptsAndUpgrades upgrades and rolls back with each change, by the same code.
func TestProvidersChangeWhileWebhooksAnswer(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	r := NewRepository(t, shared.Management(t).Tools)
	r.Release("v2.0.0")
	s := NewStandalone(t, r.Tools)
	if err := r.Tools.install(t.Context(), s.kubeconfig()); err != nil {
		t.Fatal(err)
	}
	w := s.Management().World(t)
	c := w.Subject(NewCluster("kept", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()
	answered := w.Admission()

	for _, d := range w.deployments() {
		w.update(&d, func() {
			container := &d.Spec.Template.Spec.Containers[0]
			container.Args = append(container.Args, "--sync-period=11m")
		})
		if r := w.Tools.Kubectl(t.Context(), "", "--kubeconfig", w.Kubeconfig, "-n", d.Namespace, "rollout", "status", "deployment/"+d.Name, "--timeout=2m"); r.Failed {
			t.Error(r)
		}
	}

	// One of these Deployments is updated by the upgrade, the other one created again.
	scaled := []string{"capi-controller-manager", "capi-kubeadm-bootstrap-controller-manager"}
	for _, name := range scaled {
		d := w.deployment(name)
		for _, args := range [][]string{{"scale", "--replicas", "2"}, {"rollout", "status", "--timeout", "2m"}} {
			if r := w.Tools.Kubectl(t.Context(), "", append(args, "--kubeconfig", w.Kubeconfig, "-n", d.Namespace, "deployment/"+d.Name)...); r.Failed {
				t.Error(r)
			}
		}
	}

	r.Release("v2.0.1")
	// A selector is immutable: the Deployment is deleted without its Pods and created again.
	r.Edit("bootstrap-kubeadm", "v2.0.1", strings.NewReplacer("control-plane: controller-manager", "control-plane: bootstrap-manager").Replace)
	// The Service selects the new Pods only.
	r.Edit("bootstrap-kubeadm", "v2.0.1", strings.NewReplacer("  selector:\n    cluster.x-k8s.io/provider: bootstrap-kubeadm\n", "  selector:\n    control-plane: bootstrap-manager\n").Replace)
	unknown := strings.NewReplacer("/kubeadm-control-plane-controller:", "/another-controller:")
	r.Edit("control-plane-kubeadm", "v2.0.1", unknown.Replace)
	w.upgradeFails("control-plane-kubeadm", "another-controller:v2.0.1", "rolled back")
	if diff := cmp.Diff(map[string]string{"control-plane-kubeadm": "v2.0.0"}, w.installed("control-plane-kubeadm")); diff != "" {
		t.Errorf("version of the provider that was rolled back (-want +got):\n%s", diff)
	}

	r.Edit("control-plane-kubeadm", "v2.0.1", strings.NewReplacer("/another-controller:", "/kubeadm-control-plane-controller:").Replace)
	w.Upgrade()
	want := map[string]string{}
	for _, label := range []string{"bootstrap-kubeadm", "cluster-api", "control-plane-kubeadm", "infrastructure-in-memory"} {
		want[label] = "v2.0.1"
	}
	if diff := cmp.Diff(want, w.installed()); diff != "" {
		t.Errorf("installed providers (-want +got):\n%s", diff)
	}
	for _, d := range w.deployments() {
		want := int32(1)
		if slices.Contains(scaled, d.Name) {
			want = 2
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":v2.0.1") || *d.Spec.Replicas != want || d.Status.AvailableReplicas != want {
			t.Errorf("Deployment %s has image %s, and of %d replicas %d are available", d.Name, image, *d.Spec.Replicas, d.Status.AvailableReplicas)
		}
	}
	if d := w.deployment("capi-kubeadm-bootstrap-controller-manager"); d.Spec.Selector.MatchLabels["control-plane"] != "bootstrap-manager" {
		t.Errorf("Deployment %s has the selector %v", d.Name, d.Spec.Selector.MatchLabels)
	}
	c.Eventually("the Cluster keeps its Machines", Ready, SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before), c.WorkloadMatches)
	if n := answered(); n < 100 {
		t.Errorf("webhooks answered %d requests only", n)
	}
	c.Change(SetWorkers(2))
	c.Eventually("the upgraded providers reconcile", Ready, Workers(2), c.WorkloadMatches)
	c.Gone()
}

// upgradeFails upgrades all providers to the latest version, and checks that this fails with one error that has all parts.
func (w *World) upgradeFails(parts ...string) {
	w.t.Helper()
	r := w.upgradeAll()
	missing := slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(r.Err, part) })
	if !r.Failed || len(missing) > 0 || strings.Count(r.Err, "Error:") > 1 {
		w.t.Fatalf("the upgrade should fail with one error about %q: %s", missing, r)
	}
}

// deployments returns the Deployments of all providers.
func (w *World) deployments() []appsv1.Deployment {
	w.t.Helper()
	var list appsv1.DeploymentList
	if err := w.Client.List(w.t.Context(), &list, client.HasLabels{"cluster.x-k8s.io/provider"}); err != nil {
		w.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		w.t.Fatal("there are no Deployments of providers")
	}
	return list.Items
}

// deployment returns the Deployment of a provider.
func (w *World) deployment(name string) appsv1.Deployment {
	w.t.Helper()
	all := w.deployments()
	i := slices.IndexFunc(all, func(d appsv1.Deployment) bool { return d.Name == name })
	if i < 0 {
		w.t.Fatalf("there is no Deployment %s", name)
	}
	return all[i]
}
