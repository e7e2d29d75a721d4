package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMergePatches(t *testing.T) {
	before := map[string]string{"keep": "1", "drop": "2"}
	tests := []struct {
		reason string
		patch  string
		want   map[string]string
		bad    bool
	}{
		{reason: "setting and removing fields", patch: `{"data":{"drop":null,"new":"3"}}`, want: map[string]string{"keep": "1", "new": "3"}},
		{reason: "null", patch: `null`, want: before, bad: true},
		{reason: "a list", patch: `[]`, want: before, bad: true},
		{reason: "a string", patch: `"x"`, want: before, bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			c := newTestCluster(t)
			maps := c.client(t).CoreV1().ConfigMaps("default")
			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: before}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(tt.patch), metav1.PatchOptions{})
			if apierrors.IsBadRequest(err) != tt.bad || err != nil && !tt.bad {
				t.Errorf("%s: %v", tt.reason, err)
			}
			after, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, after.Data); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
