package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func lockHeld(information string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test-lock", UID: "lock-uid"}, Data: map[string]string{lockKey: information}}
}

func TestAcquire(t *testing.T) {
	tests := []struct {
		reason  string
		objects []client.Object
		want    string
		err     string
		// after is the content of the lock afterwards; empty: it does not exist.
		after string
	}{
		{reason: "a free lock is taken", want: "a", after: `{"machineName":"a"}`},
		{reason: "the holder enters again", objects: []client.Object{lockHeld(`{"machineName":"a"}`)}, want: "a", after: `{"machineName":"a"}`},
		{reason: "a holder that exists keeps it", objects: []client.Object{lockHeld(`{"machineName":"b"}`), newMachine("b", true)}, want: "b", after: `{"machineName":"b"}`},
		{reason: "a holder that does not exist loses it, and the caller retries", objects: []client.Object{lockHeld(`{"machineName":"b"}`)}, want: "b"},
		{reason: "an invalid lock is never considered released", objects: []client.Object{lockHeld(`{`)}, err: "is invalid", after: `{`},
		{reason: "a lock without information is not ours", objects: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test-lock"}}}, err: "is invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, tt.objects...)
			got, err := w.c.locks.acquire(t.Context(), w.c.Clients, newCluster(), "a")
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("err = %v, want one that contains %q", err, tt.err)
			}
			if got != tt.want {
				t.Errorf("held by %q, want %q", got, tt.want)
			}
			lock := &corev1.ConfigMap{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "test-lock"}, lock); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if lock.Data[lockKey] != tt.after {
				t.Errorf("the lock contains %q afterwards, want %q", lock.Data[lockKey], tt.after)
			}
		})
	}
}

func TestLockBelongsToCluster(t *testing.T) {
	w := newWorld(t)
	if _, err := w.c.locks.acquire(t.Context(), w.c.Clients, newCluster(), "a"); err != nil {
		t.Fatal(err)
	}
	lock := get(t, w, "test-lock", &corev1.ConfigMap{})
	if lock.Labels[clusterv1.ClusterNameLabel] != "test" || len(lock.OwnerReferences) != 1 || lock.OwnerReferences[0].UID != "cluster-test" || lock.OwnerReferences[0].Controller != nil {
		t.Errorf("the lock goes with its Cluster: %+v", lock.ObjectMeta)
	}
}

func TestOneOfManyAcquires(t *testing.T) {
	const machines = 8
	var objects []client.Object
	for i := range machines {
		objects = append(objects, newMachine(fmt.Sprintf("m%d", i), true))
	}
	w := newWorld(t, objects...)
	held := make([]string, machines)
	var all sync.WaitGroup
	for i := range machines {
		all.Go(func() {
			var err error
			if held[i], err = w.c.locks.acquire(t.Context(), w.c.Clients, newCluster(), fmt.Sprintf("m%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	winners := 0
	for i, holder := range held {
		if holder == fmt.Sprintf("m%d", i) {
			winners++
		}
		if holder != held[0] {
			t.Errorf("Machines disagree about the holder of the lock: %q", held)
		}
	}
	if winners != 1 {
		t.Errorf("%d Machines hold the lock, want 1: %q", winners, held)
	}
}

func TestRelease(t *testing.T) {
	tests := []struct {
		reason  string
		cluster *clusterv1.Cluster
		later   time.Duration
		want    bool
	}{
		{reason: "an initialized control plane needs no lock", cluster: initialized(newCluster()), want: true},
		{reason: "one that is being initialized does", cluster: newCluster()},
		{reason: "much later, it is no longer checked", cluster: initialized(newCluster()), later: time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, lockHeld(`{"machineName":"a"}`))
			w.Clock.SetTime(now.Add(tt.later))
			testenv.Must(t, w.c.locks.release(t.Context(), w.c.Clients, tt.cluster))
			err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "test-lock"}, &corev1.ConfigMap{})
			if released := apierrors.IsNotFound(err); released != tt.want {
				t.Errorf("released = %v, want %v", released, tt.want)
			}
		})
	}
}

func TestReleaseReadsOnceUnlessItFails(t *testing.T) {
	w := newWorld(t, lockHeld(`{"machineName":"a"}`))
	deletes := 0
	clients := w.c.Clients
	clients.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			if deletes++; deletes == 1 {
				return errors.New("the API server hiccups")
			}
			return c.Delete(ctx, obj, o...)
		},
	})
	release := func() error { return w.c.locks.release(t.Context(), clients, initialized(newCluster())) }
	if err := release(); err == nil {
		t.Error("a failure is reported")
	}
	for range 3 {
		if err := release(); err != nil {
			t.Error(err)
		}
	}
	if deletes != 2 {
		t.Errorf("%d requests, want one that failed and one that did not", deletes)
	}
}

// TestReleaseOfOnesOwnLock: the lock that this process created is deleted without reading it, and no other one.
func TestReleaseOfOnesOwnLock(t *testing.T) {
	for _, tt := range []struct {
		reason string
		then   func(t *testing.T, w *world, lock *corev1.ConfigMap)
		reads  int
		gone   bool
	}{
		{reason: "it was not changed", then: func(*testing.T, *world, *corev1.ConfigMap) {}, reads: 0, gone: true},
		{reason: "it was written since", reads: 1, gone: true, then: func(t *testing.T, w *world, lock *corev1.ConfigMap) {
			t.Helper()
			lock.Annotations = map[string]string{"note": "x"}
			testenv.Must(t, w.Update(t.Context(), lock))
		}},
		{reason: "it was replaced by another Cluster's", reads: 1, gone: false, then: func(t *testing.T, w *world, lock *corev1.ConfigMap) {
			t.Helper()
			testenv.Must(t, w.Delete(t.Context(), lock))
			another := lockOf("successor", "a")
			testenv.Must(t, w.Create(t.Context(), another))
			another.Annotations = map[string]string{"note": "x"} // the fake API server numbers versions by object
			testenv.Must(t, w.Update(t.Context(), another))
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t)
			if by, err := w.c.locks.acquire(t.Context(), w.c.Clients, newCluster(), "a"); err != nil || by != "a" {
				t.Fatalf("held by %q: %v", by, err)
			}
			lock := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: "default", Name: "test-lock"}
			testenv.Must(t, w.Get(t.Context(), key, lock))
			tt.then(t, w, lock)
			reads := 0
			clients := w.c.Clients
			clients.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, obj, o...)
				},
			})
			testenv.Must(t, w.c.locks.release(t.Context(), clients, initialized(newCluster())))
			err := w.Get(t.Context(), key, &corev1.ConfigMap{})
			if gone := apierrors.IsNotFound(err); gone != tt.gone || reads != tt.reads {
				t.Errorf("gone: %t, want %t; %d reads, want %d", gone, tt.gone, reads, tt.reads)
			}
		})
	}
}
