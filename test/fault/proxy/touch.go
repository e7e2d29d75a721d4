package proxy

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// TouchedAnnotation is what Touch changes. It means nothing to anybody.
const TouchedAnnotation = "fault.cluster.x-k8s.io/touched"

// touch changes all Machines of the run, and lets the fault begin when as many events have passed.
func (e *endpoint) touch(ctx context.Context, r request.Request, f script.Fault) {
	client, err := dynamic.NewForConfig(e.proxy.options.Upstream)
	if err != nil {
		e.proxy.Fail(err)
		return
	}
	machines := client.Resource(schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: clusterv1.GroupVersion.Version, Resource: "machines"}).Namespace(r.Home)
	list, err := machines.List(ctx, metav1.ListOptions{})
	if err != nil {
		e.proxy.Fail(err)
		return
	}
	f.After += len(list.Items)
	e.proxy.options.Stage.Begin(f)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, TouchedAnnotation, time.Now().Format(time.RFC3339Nano))
	for _, m := range list.Items {
		// One that has gone meanwhile need not be touched.
		_, _ = machines.Patch(ctx, m.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
}
