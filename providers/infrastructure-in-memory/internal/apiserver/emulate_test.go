package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
)

func newLegacyCluster(t *testing.T) *testCluster {
	t.Helper()
	c := newTestCluster(t)
	joinMembers(t, c, 3)
	if err := c.group.SetFaults(faults.Faults{Emulate: faults.EmulateV17}); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLegacyAPIServerSupportsV17Clients makes the requests that clients of v1.7 make.
func TestLegacyAPIServerSupportsV17Clients(t *testing.T) {
	c := newLegacyCluster(t)
	client, ctx := c.client(t), t.Context()
	made, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.ResourceVersion, "v") {
		t.Errorf("the resource version is %q, want one that is not a number", made.ResourceVersion)
	}
	events, err := client.CoreV1().ConfigMaps("default").Watch(ctx,
		metav1.ListOptions{AllowWatchBookmarks: true, ResourceVersion: "v99999999999999999"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	if first := <-events.ResultChan(); first.Type != watch.Added || !strings.HasPrefix(first.Object.(*corev1.ConfigMap).ResourceVersion, "v") {
		t.Errorf("the watch must begin with existing objects: %+v", first)
	}
	made.Data = map[string]string{"x": "y"}
	updated, err := client.CoreV1().ConfigMaps("default").Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("updating an old version: %v, want Conflict", err)
	}
	for _, patch := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
		body := `{"metadata":{"resourceVersion":"` + updated.ResourceVersion + `"},"data":{"z":"` + string(patch) + `"}}`
		if updated, err = client.CoreV1().ConfigMaps("default").Patch(ctx, "a", patch, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
	}
	if err := client.CoreV1().ConfigMaps("default").Delete(ctx, "a",
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &updated.ResourceVersion}}); err != nil {
		t.Error(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if node, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.Status.Phase = "Running"
	if node, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil || node.Status.Phase != "Running" {
		t.Errorf("without the status subresource, an update must write the status: %v", err)
	}
	if groups, err := client.Discovery().ServerGroups(); err != nil || len(groups.Groups) != 3 {
		t.Errorf("want three groups: %v, %v", groups, err)
	}
}

func TestLegacyAPIServerSupportsNothingElse(t *testing.T) {
	c := newLegacyCluster(t)
	client, ctx := c.client(t), t.Context()
	get := func(path string) func() error {
		return func() error { return client.CoreV1().RESTClient().Get().AbsPath(path).Do(ctx).Error() }
	}
	for _, test := range []struct {
		reason string
		do     func() error
		code   int
	}{
		{"server-side apply", func() error {
			_, err := client.CoreV1().ConfigMaps("default").Patch(ctx, "a", types.ApplyPatchType, []byte(`{}`),
				metav1.PatchOptions{FieldManager: "m"})
			return err
		}, http.StatusUnsupportedMediaType},
		{"JSON patch", func() error {
			_, err := client.CoreV1().ConfigMaps("default").Patch(ctx, "a", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{})
			return err
		}, http.StatusUnsupportedMediaType},
		{"eviction", func() error {
			return client.CoreV1().Pods("kube-system").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "etcd-cp-0"}})
		}, http.StatusNotFound},
		{"status", func() error {
			_, err := client.CoreV1().Nodes().UpdateStatus(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-0"}}, metav1.UpdateOptions{})
			return err
		}, http.StatusNotFound},
		{"deletion of collections", func() error {
			return client.CoreV1().Secrets("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}, http.StatusMethodNotAllowed},
		{"another group", func() error {
			_, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
			return err
		}, http.StatusInternalServerError},
		{"another kind", func() error {
			_, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
			return err
		}, http.StatusNotFound},
		{"version", get("/version"), http.StatusNotFound},
		{"health", get("/readyz"), http.StatusNotFound},
		{"schema", get("/openapi/v3"), http.StatusNotFound},
	} {
		var got apierrors.APIStatus
		if err := test.do(); !errors.As(err, &got) || int(got.Status().Code) != test.code {
			t.Errorf("%s: %v, want %d", test.reason, err, test.code)
		}
	}
	list, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) != 3 || !strings.HasPrefix(list.ResourceVersion, "v") {
		t.Errorf("pagination must not be supported: %d objects at %q, %v", len(list.Items), list.ResourceVersion, err)
	}
}

func TestLegacyEtcd(t *testing.T) {
	c := newLegacyCluster(t)
	client := c.etcdClient(t, c.endpoint.Address(), "cp-0")
	state, err := client.Status(t.Context(), "etcd-cp-0")
	if err != nil || state.Header != nil || state.Leader == 0 {
		t.Errorf("the status must not have the responding member: %+v, %v", state, err)
	}
	list, err := client.MemberList(t.Context())
	if err != nil || list.Header != nil || len(list.Members) != 3 {
		t.Errorf("the list of members must not have the responding member: %+v, %v", list, err)
	}
	for reason, do := range map[string]func(context.Context) error{
		"reading":    func(ctx context.Context) error { _, err := client.Get(ctx, "health"); return err },
		"defragment": func(ctx context.Context) error { _, err := client.Defragment(ctx, "etcd-cp-0"); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := do(ctx); status.Code(errors.Unwrap(err)) != codes.Unimplemented && !strings.Contains(err.Error(), "not implemented") {
			t.Errorf("%s: %v", reason, err)
		}
		cancel()
	}
	if _, err := client.MemberRemove(t.Context(), list.Members[2].ID); err != nil {
		t.Error(err)
	}
}
