package journey

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// admissionPeriod is the time between two requests of a client.
	admissionPeriod = 10 * time.Millisecond
	// admissionLimit is how long a request may take. It is below the time that API servers wait for webhooks, and far above what
	// requests take on a machine that starts all providers at the same time.
	admissionLimit = 5 * time.Second
)

// admitted has an object with webhooks of each component of the product.
const admitted = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: admitted}
spec: {paused: true}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: admitted}
spec: {}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: admitted}
spec:
  version: v1.35.0
  kubeadmConfigSpec: {}
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, name: admitted}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: admitted}
spec: {template: {spec: {}}}
`

// Admission creates objects with webhooks of every component, as dry runs, until the returned function is called, which returns the
// number of requests. A request that fails or takes longer than admissionLimit is an error of the test.
func (w *World) Admission() (stop func() (requests int)) {
	w.t.Helper()
	objects, err := parseObjects(admitted)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var clients sync.WaitGroup
	counts := make([]int, len(objects))
	for i, o := range objects {
		o.SetNamespace(w.Namespace)
		clients.Go(func() { counts[i] = w.admit(ctx, o) })
	}
	w.t.Cleanup(func() { cancel(); clients.Wait() })
	return func() int {
		cancel()
		clients.Wait()
		sum := 0
		for _, n := range counts {
			sum += n
		}
		return sum
	}
}

// admit creates an object as a dry run, again and again until the context ends, and returns how often.
func (w *World) admit(ctx context.Context, o *unstructured.Unstructured) int {
	ticker := time.NewTicker(admissionPeriod)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return n
		case <-ticker.C:
		}
		began := time.Now()
		err := w.Client.Create(ctx, o.DeepCopy(), client.DryRunAll)
		took := time.Since(began)
		if ctx.Err() != nil {
			return n
		}
		if err != nil || took > admissionLimit {
			w.t.Errorf("request %d for a %s took %s: %v", n, o.GetKind(), took, err)
			return n
		}
	}
}
