package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// TestBodiesAndObjectsAreLimited matters because users of a workload cluster must not crash the process, which serves all
// clusters.
func TestBodiesAndObjectsAreLimited(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().ConfigMaps("default")
	for reason, bytes := range map[string]int{"a body that is too large": maxBody + 1, "an object that is too large": 2 << 20} {
		_, err := maps.Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Data: map[string]string{"x": strings.Repeat("x", bytes)}}, metav1.CreateOptions{})
		if !apierrors.IsRequestEntityTooLargeError(err) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestPatchesThatDouble sends a patch whose operations copy the previous copy: thirty of them expand a hundred bytes to a gigabyte.
func TestPatchesThatDouble(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{}},
			Data: map[string]string{"x": strings.Repeat("x", 100)}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var operations []string
	for i := range 24 {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/y%d"}`, i))
	}
	_, err := maps.Patch(t.Context(), "a", types.JSONPatchType, []byte("["+strings.Join(operations, ",")+"]"), metav1.PatchOptions{})
	if !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("%v", err)
	}
}

// TestBodiesThatExpand sends YAML aliases, which JSON does not have: a body of a tenth of the limit expands to gigabytes.
func TestBodiesThatExpand(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().RESTClient()
	if _, err := c.client(t).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bomb := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: &a " + strings.Repeat("x",
		100_000) + "}\nz: [" + strings.Repeat("*a, ", 2000) + "]\n")
	const one = "/api/v1/namespaces/default/configmaps/a"
	for reason, r := range map[string]*rest.Request{
		"an object":               maps.Post().AbsPath("/api/v1/namespaces/default/configmaps").SetHeader("Content-Type", "application/yaml"),
		"a merge patch":           maps.Patch(types.MergePatchType).AbsPath(one),
		"a strategic merge patch": maps.Patch(types.StrategicMergePatchType).AbsPath(one),
		"an apply patch":          maps.Patch(types.ApplyPatchType).AbsPath(one).Param("fieldManager", "m"),
		"options of a deletion":   maps.Delete().AbsPath(one).SetHeader("Content-Type", "application/yaml"),
	} {
		if err := r.Body(bomb).Do(t.Context()).Error(); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "aliases expand") {
			t.Errorf("%s: %.300v", reason, err)
		}
	}
}

// TestMalformedPatches sends a patch for which the library panics: a removal from a list of maps.
func TestMalformedPatches(t *testing.T) {
	c := newTestCluster(t)
	if _, err := store.Ensure(c.group, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"taints":[{"key":"a"}],"$deleteFromPrimitiveList/taints":[{"key":"a"}],` +
		`"$setElementOrder/taints":[{"key":"a"}]}}`)
	for _, text := range [][]byte{patch, []byte(`{"metadata":{"finalizers":[{}],"$setElementOrder/finalizers":[{}]}}`)} {
		_, err := c.client(t).CoreV1().Nodes().Patch(t.Context(), "n", types.StrategicMergePatchType, text, metav1.PatchOptions{})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFullClusters(t *testing.T) {
	c := newTestCluster(t)
	simulated := cloud.New(cloud.Options{Limit: 16 << 10})
	small := addTestCluster(t, simulated, c.server, types.NamespacedName{Namespace: "default", Name: "small"}, c.ca, c.etcdCA)
	maps := small.client(t).CoreV1().ConfigMaps("default")
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", i)}}, metav1.CreateOptions{})
	}
	status, ok := err.(apierrors.APIStatus) // client-go returns it without wrapping.
	if !ok || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "is full") {
		t.Errorf("%v", err)
	}
	if _, err := c.client(t).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("writing to another cluster: %v", err)
	}
}

func TestLargeListsWaitForEachOther(t *testing.T) {
	c := newTestCluster(t)
	for i := range 3 {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("a", i)},
			Data: map[string]string{"x": strings.Repeat("x", 1<<19)}}
		if _, err := store.Ensure(c.group, o); err != nil {
			t.Fatal(err)
		}
	}
	maps := c.client(t).CoreV1()
	for range maxLarge {
		c.endpoint.large <- struct{}{}
	}
	listed := make(chan error, 1)
	go func() {
		_, err := maps.ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		listed <- err
	}()
	if _, err := maps.Secrets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a small list must not wait: %v", err)
	}
	select {
	case err := <-listed:
		t.Errorf("a large list must wait: %v", err)
	default:
	}
	<-c.endpoint.large
	if err := <-listed; err != nil {
		t.Error(err)
	}
	if len(c.endpoint.large) != maxLarge-1 {
		t.Errorf("%d of %d are reserved", len(c.endpoint.large), maxLarge)
	}
}

func TestPanicsAreErrors(t *testing.T) {
	c := newTestCluster(t)
	c.server.tables = nil // Requests for tables panic.
	if _, err := store.Ensure(c.group, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	err := c.client(t).CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/configmaps").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Error()
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("%v", err)
	}
	if _, err := c.client(t).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("another request: %v", err)
	}
}
