package step_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// outcomes of a reconcile with a guarded action.
const (
	acts  = "acts"
	waits = "waits for the cache"
	skips = "is not reconciled"
)

// pausing is a way to pause an object of a Cluster.
type pausing struct {
	reason string
	pause  func(cluster *clusterv1.Cluster, own client.Object)
	// paused is whether that pauses the object.
	paused bool
}

func pausings(ofCluster bool) []pausing {
	return []pausing{
		{"nothing is paused", func(*clusterv1.Cluster, client.Object) {}, false},
		{"the object has the annotation", func(_ *clusterv1.Cluster, own client.Object) { object.PausedByAnnotation(own) }, true},
		{"the Cluster has spec.paused", func(cluster *clusterv1.Cluster, _ client.Object) { object.Paused(cluster) }, true},
		{"the Cluster has the annotation", func(cluster *clusterv1.Cluster, _ client.Object) { object.PausedByAnnotation(cluster) }, ofCluster},
	}
}

// guarded returns a reconciler whose only step records whether it acts, behind the guard.
func guarded[T step.Object](s *fakeapi.Server, fresh func() T, cluster client.ObjectKey, outcome *string) *step.Runner[T] {
	clients := s.ForController()
	cached := func(ctx context.Context) (*clusterv1.Cluster, error) {
		c := &clusterv1.Cluster{}
		return c, clients.Client.Get(ctx, cluster, c)
	}
	*outcome = skips
	return step.Controller[T, T]{
		Name: "guarded", New: fresh, Scope: step.Self[T],
		Paused: func(ctx context.Context, _ T) (bool, error) {
			c, err := cached(ctx)
			return ptr.Deref(c.Spec.Paused, false), err
		},
		Steps: []step.Step[T]{step.Do("act", func(ctx context.Context, own T) (step.Result, error) {
			c, err := cached(ctx)
			if err != nil {
				return step.Done(), err
			}
			result, err := clients.Latest(ctx, step.Reread(c, &clusterv1.Cluster{}, nil), step.Reread(own, fresh(), nil))
			if *outcome = acts; result.Ends() {
				*outcome = waits
			}
			return result, err
		})},
	}.Runner(clients)
}

// testPausing pauses an object in all ways, in the cache, in the API server, and in both.
func testPausing[T step.Object](t *testing.T, fresh func() T, build func() T) {
	t.Helper()
	_, isCluster := any(build()).(*clusterv1.Cluster)
	for _, way := range pausings(isCluster) {
		for _, where := range []struct {
			reason      string
			cache, live bool
			paused      string
			unpaused    string
		}{
			{"in cache and API server", true, true, skips, acts},
			{"only in the API server, because the cache is stale", false, true, waits, waits},
			{"only in the cache, because it is stale", true, false, skips, waits},
		} {
			t.Run(way.reason+" "+where.reason, func(t *testing.T) {
				own, c := build(), object.Builder{}.Cluster()
				objects := []client.Object{own}
				if !isCluster {
					objects = append(objects, c)
				}
				s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{controlplanev1.AddToScheme}, Objects: objects})
				for _, view := range []struct {
					*fakeapi.View
					paused bool
				}{{s.Cache, where.cache}, {s.Live, where.live}} {
					own, cluster := own.DeepCopyObject().(client.Object), c.DeepCopy()
					if same, ok := own.(*clusterv1.Cluster); ok {
						cluster = same
					}
					if view.paused {
						way.pause(cluster, own)
					}
					view.Show(own, cluster)
				}
				var got string
				_, err := guarded(s, fresh, client.ObjectKeyFromObject(c), &got).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(own)})
				testenv.Must(t, err)
				want := where.unpaused
				if way.paused {
					want = where.paused
				}
				if way.reason == "nothing is paused" {
					want = acts
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestPausedObjectsAreLeftUnchanged(t *testing.T) {
	var build object.Builder
	t.Run("Cluster", func(t *testing.T) {
		testPausing(t, func() *clusterv1.Cluster { return &clusterv1.Cluster{} }, func() *clusterv1.Cluster { return build.Cluster() })
	})
	t.Run("Machine", func(t *testing.T) {
		testPausing(t, func() *clusterv1.Machine { return &clusterv1.Machine{} }, func() *clusterv1.Machine { return build.Machine("m") })
	})
	t.Run("MachineSet", func(t *testing.T) {
		testPausing(t, func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} }, func() *clusterv1.MachineSet { return build.MachineSet("s") })
	})
	t.Run("MachineDeployment", func(t *testing.T) {
		testPausing(t, func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
			func() *clusterv1.MachineDeployment { return build.MachineDeployment("d") })
	})
	t.Run("MachinePool", func(t *testing.T) {
		testPausing(t, func() *clusterv1.MachinePool { return &clusterv1.MachinePool{} }, func() *clusterv1.MachinePool { return build.MachinePool("p") })
	})
	t.Run("MachineHealthCheck", func(t *testing.T) {
		testPausing(t, func() *clusterv1.MachineHealthCheck { return &clusterv1.MachineHealthCheck{} },
			func() *clusterv1.MachineHealthCheck { return build.MachineHealthCheck("h") })
	})
	t.Run("KubeadmControlPlane", func(t *testing.T) {
		testPausing(t, func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
			func() *controlplanev1.KubeadmControlPlane {
				return &controlplanev1.KubeadmControlPlane{ObjectMeta: build.Machine("k").ObjectMeta}
			})
	})
}

func TestLatest(t *testing.T) {
	var build object.Builder
	generation := func(live, cached *clusterv1.MachineSet) bool { return live.Generation == cached.Generation }
	cases := []struct {
		reason string
		// cached and live change the MachineSet in the cache and in the API server.
		cached, live func(*fakeapi.View, *clusterv1.MachineSet)
		err          error
		want         string
	}{
		{reason: "it is up to date"},
		{reason: "other fields do not matter", live: func(_ *fakeapi.View, set *clusterv1.MachineSet) { set.Labels = map[string]string{"new": ""} }},
		{reason: "it is being deleted, and the cache has that", cached: deleting, live: deleting},
		{reason: "it is being deleted", live: deleting, want: "the cache to show the latest MachineSet s"},
		{reason: "it was replaced", live: func(_ *fakeapi.View, set *clusterv1.MachineSet) { set.UID = "other" }, want: "the cache to show the latest MachineSet s"},
		{reason: "it does not exist", live: func(v *fakeapi.View, set *clusterv1.MachineSet) { v.Hide(set) }, want: "the cache to show the latest MachineSet s"},
		{reason: "what is compared differs", live: func(_ *fakeapi.View, set *clusterv1.MachineSet) { set.Generation = 2 }, want: "the cache to show the latest MachineSet s"},
		{reason: "the API server fails", err: errors.New("timeout"), want: "reading MachineSet s from the API server: timeout"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			set := build.MachineSet("s")
			s := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{set}})
			show(s.Cache, set, tc.cached)
			show(s.Live, set, tc.live)
			s.Before = func(r fakeapi.Request) error {
				if r.Cached {
					return nil
				}
				return tc.err
			}
			clients := s.ForController()
			cached := &clusterv1.MachineSet{}
			testenv.Must(t, clients.Client.Get(t.Context(), client.ObjectKeyFromObject(set), cached))
			result, err := clients.Latest(t.Context(), step.Reread(cached, &clusterv1.MachineSet{}, generation))
			got := result.Waiting()
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || result.Ends() != (tc.want != "" && tc.err == nil) || result.Ends() && result.After() != step.CacheBackstop {
				t.Errorf("result %+v, %v, want %q", result, err, tc.want)
			}
			if want := []string{"get MachineSet s"}; tc.err == nil && !slices.Equal(s.LiveReads, want) {
				t.Errorf("live reads %v, want %v", s.LiveReads, want)
			}
		})
	}
}

func deleting(_ *fakeapi.View, set *clusterv1.MachineSet) { object.Deleting(set) }

// show makes a view have a changed copy of a MachineSet.
func show(v *fakeapi.View, set *clusterv1.MachineSet, change func(*fakeapi.View, *clusterv1.MachineSet)) {
	changed := set.DeepCopy()
	v.Show(changed)
	if change != nil {
		change(v, changed)
	}
}
