package live

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// TestWait is what create, delete and wait have in common.
func TestWait(t *testing.T) {
	failed := errors.New("the Cluster has failed")
	for _, tc := range []struct {
		reason  string
		timeout time.Duration
		left    []string
		err     error
		code    int
		want    string
	}{
		{reason: "nothing is left", timeout: time.Hour},
		{reason: "an error ends it", timeout: time.Hour, err: failed, code: 1, want: "cluster ns/c1: the Cluster has failed"},
		{
			reason: "what is left is in the error of a timeout, with its exit code", timeout: time.Nanosecond, left: []string{"Machines"},
			code: factory.ExitTimeout, want: "cluster ns/c1 is not ready after 1ns: still waiting for ",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := clusterv1beta1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(tree.ClusterKind, meta.RESTScopeNamespace)
			indexed := func(o client.Object) []string { return []string{o.GetName()} }
			c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithIndex(&clusterv1beta1.Cluster{}, "metadata.name", indexed).
				WithObjects(&clusterv1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1"}}).Build()
			streams, _ := iostreams.Test()
			f := New(streams, clock.RealClock{}, cluster)
			f.Screen.W = &bytes.Buffer{}
			err := f.Wait(t.Context(), c, Ending{Cluster: cluster, Timeout: tc.timeout, State: "ready"},
				func(_ context.Context, objects *tree.Objects) ([]string, error) {
					if tc.timeout == time.Hour && objects.Cluster(cluster) == nil {
						t.Error("the objects lack the Cluster")
					}
					return tc.left, tc.err
				})
			if factory.ExitCode(err) != tc.code || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v with exit code %d", err, factory.ExitCode(err))
			}
		})
	}
}
