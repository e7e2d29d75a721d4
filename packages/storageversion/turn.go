package storageversion

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

const (
	// noticeInterval is how often an API server is asked in which version it stores a kind, and noticeTimeout for how long.
	noticeInterval = 200 * time.Millisecond
	noticeTimeout  = 30 * time.Second
)

// Turn makes a definition of Cluster API store all objects in another version that it serves.
type Turn struct {
	// Definition is its name.
	Definition string
	// Kind is its kind, in that version.
	Kind schema.GroupVersionKind
	// Stores returns the version in which an API server stores a kind.
	Stores func(ctx context.Context, kind schema.GroupKind) (string, error)
	// Retry repeats a request that may succeed later; nil means that it is made once.
	Retry func(ctx context.Context, do func(context.Context) error) error
}

// PlanTurn returns the turn of a definition to the newest version that it serves and that is not newer than the given one: a kind that
// has no v1beta1, such as ExtensionConfig, had v1alpha1 when the others had v1beta1. It returns nil if the turn is complete, or if the
// definition is of another project. It returns an error if API servers could not convert the objects.
func PlanTurn(live *unstructured.Unstructured, newest string) (*Turn, error) {
	group, _, _ := unstructured.NestedString(live.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(live.Object, "spec", "names", "kind")
	versions := versionsOf(live)
	known := conversion.Shared().Versions(schema.GroupKind{Group: group, Kind: kind}) // The newest first.
	i := slices.IndexFunc(known, func(name string) bool {
		return apimachineryversion.CompareKubeAwareVersionStrings(name, newest) <= 0 && serves(versions, name)
	})
	if i < 0 || storageVersion(versions) == known[i] && slices.Equal(Stored(live), known[i:i+1]) {
		return nil, nil
	}
	to := known[i]
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy")
	if strategy != "Webhook" {
		return nil, fmt.Errorf("CustomResourceDefinition %s has spec.conversion.strategy %q, so that API servers do not convert its objects "+
			"to %s: upgrade its provider first", live.GetName(), strategy, to)
	}
	return &Turn{Definition: live.GetName(), Kind: schema.GroupVersionKind{Group: group, Version: to, Kind: kind}}, nil
}

// PlanTurns returns the turns of all definitions of providers, as PlanTurn does. config is that of the API server.
func PlanTurns(ctx context.Context, c client.Client, config *rest.Config, newest string) ([]*Turn, error) {
	definitions := &unstructured.UnstructuredList{}
	definitions.SetAPIVersion("apiextensions.k8s.io/v1")
	definitions.SetKind(manifest.KindCRD + "List")
	if err := c.List(ctx, definitions, client.HasLabels{clusterv1.ProviderNameLabel}); err != nil {
		return nil, fmt.Errorf("cannot list the CustomResourceDefinitions of providers: %w", err)
	}
	var turns []*Turn
	for i := range definitions.Items {
		t, err := PlanTurn(&definitions.Items[i], newest)
		if err != nil {
			return nil, err
		}
		if t != nil {
			t.Stores = func(ctx context.Context, kind schema.GroupKind) (string, error) { return stores(ctx, config, kind) }
			turns = append(turns, t)
		}
	}
	return turns, nil
}

// stores returns the version in which the API server stores a kind.
func stores(ctx context.Context, config *rest.Config, kind schema.GroupKind) (string, error) {
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	b, err := apiversion.New(apiversion.Options{Config: config, HTTPClient: web, Registry: conversion.Shared()})
	if err != nil {
		return "", err
	}
	return b.Stored(ctx, kind)
}

// Run changes the definition, and stores all objects again. report, which may be nil, is called with the number of objects that are stored,
// once per page. It can be run again after an interruption.
func (t *Turn) Run(ctx context.Context, c client.Client, report func(saved int)) error {
	m := Migration{Definition: t.Definition, Kind: t.Kind, Retry: t.Retry}
	if err := m.retry(ctx, func(ctx context.Context) error { return t.define(ctx, c) }); err != nil {
		return fmt.Errorf("cannot change the stored version of CustomResourceDefinition %s: %w", t.Definition, err)
	}
	if err := t.notice(ctx); err != nil {
		return err
	}
	return m.Run(ctx, c, report)
}

// define makes the definition store new objects in the version.
func (t *Turn) define(ctx context.Context, c client.Client) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind(manifest.KindCRD)
	crd.SetName(t.Definition)
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		return err
	}
	versions := versionsOf(crd)
	if storageVersion(versions) == t.Kind.Version {
		return nil
	}
	if !serves(versions, t.Kind.Version) {
		return fmt.Errorf("it no longer serves version %s", t.Kind.Version)
	}
	storeIn(crd, t.Kind.Version)
	return c.Update(ctx, crd)
}

// notice waits until the API server stores objects in the version: what is written before stays as it is.
func (t *Turn) notice(ctx context.Context) error {
	stores := ""
	err := wait.PollUntilContextTimeout(ctx, noticeInterval, noticeTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		stores, err = t.Stores(ctx, t.Kind.GroupKind())
		return err == nil && stores == t.Kind.Version, nil
	})
	if err != nil {
		return fmt.Errorf("the API server stores objects of kind %s in version %q, not yet in %s, %s after CustomResourceDefinition %s was "+
			"changed: run the command again: %w", t.Kind.Kind, stores, t.Kind.Version, noticeTimeout, t.Definition, err)
	}
	return nil
}
