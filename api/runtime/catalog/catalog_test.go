package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

func hooks(t *testing.T) *runtimecatalog.Catalog {
	t.Helper()
	c := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHooks(t *testing.T) {
	want := []string{}
	for _, name := range []string{
		"AfterClusterUpgrade", "AfterControlPlaneInitialized", "AfterControlPlaneUpgrade", "AfterWorkersUpgrade", "BeforeClusterCreate",
		"BeforeClusterDelete", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "BeforeWorkersUpgrade", "CanUpdateMachine",
		"CanUpdateMachineSet", "DiscoverVariables", "Discovery", "GeneratePatches", "GenerateUpgradePlan", "UpdateMachine", "ValidateTopology",
	} {
		want = append(want, "hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook="+name)
	}
	var got []string
	for _, h := range hooks(t).Hooks() {
		got = append(got, h.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHook(t *testing.T) {
	c := hooks(t)
	hook, err := c.GroupVersionHook(runtimehooksv1.BeforeClusterUpgrade)
	if err != nil {
		t.Fatal(err)
	}
	request, err := c.NewRequest(hook)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := request.(*runtimehooksv1.BeforeClusterUpgradeRequest); !ok {
		t.Errorf("the request is a %T", request)
	}
	response, err := c.NewResponse(hook)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := response.(*runtimehooksv1.BeforeClusterUpgradeResponse); !ok {
		t.Errorf("the response is a %T", response)
	}
	kind, err := c.Response(hook)
	if want := runtimehooksv1.GroupVersion.WithKind("BeforeClusterUpgradeResponse"); err != nil || kind != want {
		t.Errorf("the kind is %s (%v), want %s", kind, err, want)
	}
	if got, want := runtimecatalog.GVHToPath(hook, "Wait-For-Backup"), "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/wait-for-backup"; got != want {
		t.Errorf("the path is %s, want %s", got, want)
	}
	hook.Hook = "Discovery"
	if got, want := runtimecatalog.GVHToPath(hook, ""), "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"; got != want {
		t.Errorf("the path is %s, want %s", got, want)
	}
	if meta, err := c.Meta(hook); err != nil || !meta.Singleton {
		t.Errorf("the metadata is %+v (%v)", meta, err)
	}
}

// plain is not a runtime.Object.
type plain struct{}

func unnamed(*runtimehooksv1.DiscoveryRequest, *runtimehooksv1.DiscoveryResponse) {}

func TestMistakes(t *testing.T) {
	gv := schema.GroupVersion{Group: "g", Version: "v1"}
	for _, tc := range []struct {
		reason string
		gv     schema.GroupVersion
		hook   runtimecatalog.Hook
		want   string
	}{
		{"nothing", gv, nil, "<nil> is not a hook: it must be a function of pointers to a request and a response"},
		{"no function", gv, plain{}, "catalog_test.plain is not a hook: it must be a function of pointers to a request and a response"},
		{"values", gv, func(plain, plain) {}, "func(catalog_test.plain, catalog_test.plain) is not a hook: it must be a function of pointers to a request and a response"},
		{"other types", gv, unnamed, "cannot register hook g/v1, Hook=unnamed"},
		{"no group", schema.GroupVersion{Version: "v1"}, runtimehooksv1.Discovery, "cannot register hook Discovery: group and version are required"},
		{"twice", runtimehooksv1.GroupVersion, runtimehooksv1.Discovery, "cannot register hook hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=Discovery: it already exists"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := (&runtimecatalog.Builder{GroupVersion: tc.gv}).RegisterHook(tc.hook, nil).AddToCatalog(hooks(t))
			if err == nil || len(err.Error()) < len(tc.want) || err.Error()[:len(tc.want)] != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	c := runtimecatalog.New()
	if _, err := c.GroupVersionHook(runtimehooksv1.Discovery); err == nil {
		t.Error("a hook was found that is not registered")
	}
	if _, err := c.NewRequest(runtimecatalog.GroupVersionHook{}); err == nil {
		t.Error("a request was returned for a hook that is not registered")
	}
}

func TestObjects(t *testing.T) {
	c := hooks(t)
	for _, h := range c.Hooks() {
		response, err := c.NewResponse(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := response.(runtimehooksv1.ResponseObject); !ok {
			t.Errorf("%T is not a ResponseObject", response)
		}
		var request runtime.Object
		if request, err = c.NewRequest(h); err != nil {
			t.Fatal(err)
		}
		if _, ok := request.(runtimehooksv1.RequestObject); !ok && h.Hook != "Discovery" {
			t.Errorf("%T is not a RequestObject", request)
		}
	}
}
