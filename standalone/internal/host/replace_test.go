package host_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// replaced creates a component "first" with a webhook, and changes its Deployment when it serves.
func replaced(t *testing.T, mutate func(*appsv1.Deployment)) (namespace string) {
	t.Helper()
	ns := namespaceOf(t, "--name=first")
	change(t, ns, mutate)
	return ns
}

// namespaceOf creates a namespace with a component, its webhook and what these need, and waits until it is available.
func namespaceOf(t *testing.T, args ...string) string {
	t.Helper()
	ns := namespace(t)
	caBundle := withCertificate(t, ns)
	create(t, deployment(ns, args...))
	available(t, ns)
	withWebhook(t, ns, caBundle)
	wantMessage(t, ns, "the first instance serves", "first does not want unwanted")
	return ns
}

func args(values ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = values }
}

func TestReplacementServesBeforeItLeads(t *testing.T) {
	t.Parallel()
	ns := replaced(t, args("--name=second"))
	wantMessage(t, ns, "the replacement serves", "second does not want unwanted")
	until(t, &corev1.ConfigMapList{}, ns, "the replacement to lead", func(m *corev1.ConfigMap) bool {
		return m.Name == "leader" && m.Data["name"] == "second"
	})
	select {
	case <-shared.endedOf(ns):
	default:
		t.Error("the replacement leads before the first instance has ended")
	}
	until(t, &appsv1.DeploymentList{}, ns, "the end of the rollout", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 1 && d.Status.AvailableReplicas == 1
	})
}

func TestReplacementThatDoesNotServe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason   string
		mutate   func(*appsv1.Deployment)
		progress string // the reason of the condition Progressing
	}{
		{
			reason:   "an unknown image is rejected immediately",
			mutate:   func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/other:v2" },
			progress: "ProgressDeadlineExceeded",
		},
		{reason: "wrong arguments are shown while it restarts", mutate: args("--fail=wrong"), progress: "ReplicaSetUpdated"},
		{
			reason: "a replacement that is not ready exceeds the deadline",
			mutate: func(d *appsv1.Deployment) {
				args("--name=second", "--never-ready")(d)
				d.Spec.ProgressDeadlineSeconds = ptr.To[int32](1)
			},
			progress: "ProgressDeadlineExceeded",
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			ns := replaced(t, test.mutate)
			until(t, &appsv1.DeploymentList{}, ns, "a Deployment that reports the failure", func(d *appsv1.Deployment) bool {
				return d.Status.ObservedGeneration == d.Generation && condition(d, appsv1.DeploymentProgressing).Reason == test.progress &&
					condition(d, appsv1.DeploymentAvailable).Status == corev1.ConditionTrue &&
					d.Status.AvailableReplicas == 1 && d.Status.UnavailableReplicas == 1
			})
			wantMessage(t, ns, "the first instance still serves", "first does not want unwanted")
			change(t, ns, args("--name=first"))
			change(t, ns, func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = deployment(ns).Spec.Template.Spec.Containers[0].Image
			})
			until(t, &appsv1.DeploymentList{}, ns, "the end of the rollback", func(d *appsv1.Deployment) bool {
				return d.Status.ObservedGeneration == d.Generation && condition(d, appsv1.DeploymentProgressing).Reason == "NewReplicaSetAvailable"
			})
			wantMessage(t, ns, "the first instance serves after the rollback", "first does not want unwanted")
		})
	}
}

func TestRecreateStopsFirst(t *testing.T) {
	t.Parallel()
	ns := replaced(t, func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		args("--name=second", "--never-ready")(d)
	})
	if got := <-shared.endedOf(ns); got != ns {
		t.Fatalf("the component of %s ended", got)
	}
	until(t, &appsv1.DeploymentList{}, ns, "an unavailable Deployment", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 1 &&
			condition(d, appsv1.DeploymentAvailable).Status == corev1.ConditionFalse
	})
}
