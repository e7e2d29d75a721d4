package proxy

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// TouchedAnnotation is the annotation that Touch changes. No controller reads it.
const TouchedAnnotation = "fault.cluster.x-k8s.io/touched"

// touch changes all Machines of the run, or their health. The fault begins when these events are delivered.
func (e *endpoint) touch(ctx context.Context, r script.Request, f script.Fault) {
	client, err := dynamic.NewForConfig(e.proxy.options.Admin)
	if err != nil {
		e.proxy.Fail(err)
		return
	}
	machines := client.Resource(schema.GroupVersionResource{
		Group: clusterv1.GroupVersion.Group, Version: clusterv1.GroupVersion.Version, Resource: "machines",
	}).Namespace(r.Run)
	list, err := machines.List(ctx, metav1.ListOptions{})
	if err != nil {
		e.proxy.Fail(err)
		return
	}
	f.After += len(list.Items)
	e.proxy.options.Scripts.Begin(f)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, TouchedAnnotation, time.Now().Format(time.RFC3339Nano))
	for i := range list.Items {
		m := &list.Items[i]
		if f.Do == script.Sicken && m.GetName() != r.Name && sicken(m) {
			_, _ = machines.UpdateStatus(ctx, m, metav1.UpdateOptions{}) // It may be deleted already, as below.
			continue
		}
		// The Machine may be deleted already.
		_, _ = machines.Patch(ctx, m.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
}

// sicken sets the condition NodeHealthy of a Machine to False. It returns false if there is no such condition.
func sicken(m *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
	for _, one := range conditions {
		condition, ok := one.(map[string]any)
		if !ok || condition["type"] != string(clusterv1.MachineNodeHealthyCondition) {
			continue
		}
		condition["status"], condition["severity"], condition["reason"] = "False", "Warning", clusterv1.NodeConditionsFailedReason
		return unstructured.SetNestedSlice(m.Object, conditions, "status", "conditions") == nil
	}
	return false
}
