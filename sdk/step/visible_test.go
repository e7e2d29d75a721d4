package step

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// revisions is a cache that shows one revision of a Machine after the other, and then always the last one.
type revisions struct {
	client.Reader
	show  []func(*clusterv1.Machine) error
	reads int
}

func (r *revisions) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	m := obj.(*clusterv1.Machine)
	*m = clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid"}}
	show := r.show[min(r.reads, len(r.show)-1)]
	r.reads++
	return show(m)
}

func TestAwaitDeletion(t *testing.T) {
	stale := func(*clusterv1.Machine) error { return nil }
	deleting := func(m *clusterv1.Machine) error { m.DeletionTimestamp = new(metav1.Now()); return nil }
	gone := func(*clusterv1.Machine) error { return apierrors.NewNotFound(schema.GroupResource{}, "m") }
	another := func(m *clusterv1.Machine) error { m.UID = "another"; return nil }
	failing := func(*clusterv1.Machine) error { return errors.New("not synced") }
	tests := []struct {
		reason string
		show   []func(*clusterv1.Machine) error
		reads  int
	}{
		{reason: "the object is being deleted", show: []func(*clusterv1.Machine) error{stale, stale, deleting}, reads: 3},
		{reason: "the object is gone", show: []func(*clusterv1.Machine) error{stale, gone}, reads: 2},
		{reason: "there is another one with its name", show: []func(*clusterv1.Machine) error{another}, reads: 1},
		{reason: "an error ends the wait", show: []func(*clusterv1.Machine) error{stale, failing}, reads: 2},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := &revisions{show: tt.show}
				AwaitDeletion(t.Context(), cache, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid"}})
				if cache.reads != tt.reads {
					t.Errorf("%d reads, want %d", cache.reads, tt.reads)
				}
			})
		})
	}
	t.Run("a cache that stays stale is waited for only for a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			AwaitDeletion(t.Context(), &revisions{show: []func(*clusterv1.Machine) error{stale}}, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "uid"}})
		})
	})
}
