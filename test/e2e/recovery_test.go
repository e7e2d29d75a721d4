package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestRecovery kills two of three control plane machines, so that etcd has no quorum, and recovers the control plane from the third.
func TestRecovery(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	if r := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--addon", "fleet", "--wait-providers"); r.Failed {
		t.Fatal(r)
	}
	s := runtime.NewScheme()
	testenv.Must(t, fleetv1.AddToScheme(s))
	api, err := client.New(w.Config, client.Options{Scheme: s})
	testenv.Must(t, err)
	var c *journey.Subject
	stage(t, "3 control plane machines and 2 workers", func() {
		c = subject(t, w, withoutClass("plain"))
		applyFile(t, w, "cluster.yaml")
		network(t, c)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), c.WorkloadMatches)
	})
	kubectl(t, c, "create", "configmap", "data", "--from-literal", "a=b")
	before := c.Snapshot()
	workers := c.Always("workers are not replaced", journey.SameMachines((*journey.Snapshot).Workers, before))
	survivor, lost, uids := before.ControlPlane()[0], []string{}, []types.UID{}
	for _, m := range before.ControlPlane()[1:] {
		lost, uids = append(lost, m.Name), append(uids, m.UID)
		must(t, "kill", containerOf(m))
	}
	began := time.Now()
	slices.Sort(lost)
	r := &fleetv1.ControlPlaneRecovery{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "r"},
		Spec:       fleetv1.ControlPlaneRecoverySpec{ClusterName: c.Name, MinimumLossSeconds: ptr.To[int32](5)},
	}
	testenv.Must(t, api.Create(t.Context(), r))
	reaches := func(status metav1.ConditionStatus, reason string) {
		testenv.Eventually(t, "the recovery is "+reason, func() error {
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
				return err
			}
			is := report.Get(r, fleetv1.OperationCompletedCondition)
			if is == nil || is.Status != status || is.Reason != reason {
				return fmt.Errorf("it is %+v, steps %+v", is, r.Status.Steps)
			}
			return nil
		})
	}
	stage(t, "the members are shown", func() { reaches(metav1.ConditionFalse, fleetv1.OperationNotConfirmedReason) })
	for _, m := range r.Status.Members {
		t.Logf("%+v", m)
	}
	t.Log(report.Get(r, fleetv1.OperationCompletedCondition).Message)
	stage(t, "the recovery", func() {
		base := r.DeepCopy()
		r.Spec.Survivor, r.Spec.LostMachines, r.Spec.Confirm = survivor.Name, lost, c.Name+"/"+survivor.Name
		testenv.Must(t, api.Patch(t.Context(), r, client.MergeFrom(base)))
		reaches(metav1.ConditionTrue, fleetv1.OperationCompletedReason)
	})
	for _, s := range r.Status.Steps {
		t.Logf("%s: %s, %s", s.Name, s.CompletionTime.Sub(s.StartTime.Time), s.Message)
	}
	t.Logf("recovered %.0f s after the machines were killed", time.Since(began).Seconds())
	if got := kubectl(t, c, "get", "configmap", "data", "--output", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("the data are %q", got)
	}
	stage(t, "3 control plane machines again", func() {
		c.Eventually("the control plane is complete", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), c.WorkloadMatches, func(p *journey.Snapshot) error {
			if slices.ContainsFunc(p.ControlPlane(), func(m clusterv1.Machine) bool { return slices.Contains(uids, m.UID) }) {
				return errors.New("a lost Machine still exists")
			}
			return nil
		})
	})
	t.Logf("ready %.0f s after the machines were killed", time.Since(began).Seconds())
	workers()
	testenv.Must(t, api.Delete(t.Context(), r))
	gone(t, c)
}
