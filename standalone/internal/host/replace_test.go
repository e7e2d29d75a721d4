package host_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// Helm 3 waits for the ReplicaSet that has the template of a Deployment.
func TestReplicaSetIsThatOfTheTemplate(t *testing.T) {
	t.Parallel()
	ns := namespaceOf(t, "--name=first")
	ready := func(d *appsv1.Deployment) *appsv1.ReplicaSet {
		return until(t, &appsv1.ReplicaSetList{}, ns, "a ready ReplicaSet with the template", func(set *appsv1.ReplicaSet) bool {
			template := set.Spec.Template.DeepCopy()
			delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
			return metav1.IsControlledBy(set, d) && equality.Semantic.DeepEqual(*template, d.Spec.Template) && set.Status.ReadyReplicas == *d.Spec.Replicas
		})
	}
	first := ready(available(t, ns))
	change(t, ns, args("--name=second"))
	if second := ready(available(t, ns)); second.Name == first.Name {
		t.Error("another template must have another ReplicaSet")
	}
	gone(t, first)
	change(t, ns, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(0)) })
	until(t, &appsv1.ReplicaSetList{}, ns, "no replicas", func(set *appsv1.ReplicaSet) bool {
		return *set.Spec.Replicas == 0 && set.Status.Replicas == 0 && set.Status.ReadyReplicas == 0
	})
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

// A Deployment gets another selector without an interruption: it is deleted without its Pods, and created again.
func TestOrphanServesUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	ns := namespaceOf(t, "--name=first")
	orphaned(t, ns)
	wantMessage(t, ns, "the component serves without its Deployment", "first does not want unwanted")

	second := deployment(ns, "--name=second")
	relabeled := map[string]string{"control-plane": "second"}
	second.Spec.Selector.MatchLabels, second.Spec.Template.Labels = relabeled, relabeled
	create(t, second)
	until(t, &appsv1.DeploymentList{}, ns, "a Deployment whose status does not count the orphan", func(d *appsv1.Deployment) bool {
		return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == 1 && d.Status.AvailableReplicas == 1 &&
			condition(d, appsv1.DeploymentProgressing).Reason == "NewReplicaSetAvailable"
	})
	wantMessage(t, ns, "the orphan serves as long as the Service selects it", "first does not want unwanted")
	select {
	case <-shared.endedOf(ns):
		t.Error("the orphan ended although the Service needs it")
	default:
	}

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "webhook"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"control-plane":"second"}}}`))
	if err := shared.client.Patch(t.Context(), service, patch); err != nil {
		t.Fatal(err)
	}
	if got := <-shared.endedOf(ns); got != ns {
		t.Errorf("the component of %s ended", got)
	}
	wantMessage(t, ns, "the new component serves", "second does not want unwanted")
	until(t, &corev1.ConfigMapList{}, ns, "the new component to lead", func(m *corev1.ConfigMap) bool {
		return m.Name == "leader" && m.Data["name"] == "second"
	})
}

// An orphan without a new Deployment ends with its Namespace.
func TestOrphanEndsWithItsNamespace(t *testing.T) {
	t.Parallel()
	ns := namespaceOf(t, "--name=first")
	orphaned(t, ns)
	if err := shared.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		t.Fatal(err)
	}
	if got := <-shared.endedOf(ns); got != ns {
		t.Errorf("the component of %s ended", got)
	}
}

// orphaned deletes the Deployment of a namespace without its Pods, and waits until it is gone.
func orphaned(t *testing.T, ns string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "controller-manager"}}
	if err := shared.client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	gone(t, d)
}

// gone waits until an object does not exist.
func gone(t *testing.T, o client.Object) {
	t.Helper()
	for {
		err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
