package manager

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/migrator"
	"sigs.k8s.io/cluster-api/sdk/migration"
)

// addMigrator adds the controller that migrates the objects of the component's definitions. A manager of one namespace does not: it cannot
// know that no object of another one is stored in an older version.
func (r *run) addMigrator(ctx context.Context, mgr ctrl.Manager, n *needs) error {
	if r.component.Definitions == nil || r.options.skipMigration.SkipAll() || r.options.watchNamespace != "" {
		return nil
	}
	if possible, err := n.watches(ctx, migrator.NewDefinition()); err != nil || !possible {
		return err
	}
	return migrator.Setup(ctx, mgr, migrator.Options{
		Definitions: r.component.Definitions, Skip: r.options.skipMigration,
		Stores: func(ctx context.Context, d migration.Definition) (string, error) {
			b, err := apiversion.New(apiversion.Options{
				Config: mgr.GetConfig(), HTTPClient: mgr.GetHTTPClient(), Registry: versions{d}, Log: r.log,
			})
			if err != nil {
				return "", err
			}
			return b.Stored(ctx, d.Kind.GroupKind())
		},
	})
}

// versions is a registry of the versions of one definition, which converts nothing.
type versions struct{ migration.Definition }

// Versions returns the version that the definition stores, and those that it serves.
func (v versions) Versions(schema.GroupKind) []string {
	return append([]string{v.Kind.Version}, slices.DeleteFunc(slices.Clone(v.Served), func(s string) bool { return s == v.Kind.Version })...)
}

// Convert implements apiversion.Registry. Looking up a version does not convert.
func (versions) Convert(context.Context, runtime.Object, runtime.Object) error { return nil }
