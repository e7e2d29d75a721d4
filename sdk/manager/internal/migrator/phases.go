package migrator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The phases, as values of --skip-crd-migration-phases.
const (
	// StorageVersionMigration stores objects in the current version.
	StorageVersionMigration = "StorageVersionMigration"
	// CleanupManagedFields removes managers of fields in versions that are no longer served.
	CleanupManagedFields = "CleanupManagedFields"
	// all is all phases.
	all = "All"
)

// Phases are the phases that are skipped.
type Phases []string

// AddTo adds the flag.
func (p *Phases) AddTo(fs *pflag.FlagSet) {
	fs.StringSliceVar((*[]string)(p), "skip-crd-migration-phases", nil,
		"Phases of the migration of the manager's own CustomResourceDefinitions to skip, comma-separated: "+
			StorageVersionMigration+" (store objects in the current version), "+
			CleanupManagedFields+" (remove managers of fields in versions that are no longer served), "+all)
}

// Validate returns an error for phases that do not exist.
func (p *Phases) Validate() error {
	known := []string{StorageVersionMigration, CleanupManagedFields, all}
	for i := range *p {
		(*p)[i] = strings.TrimSpace((*p)[i])
		if !slices.Contains(known, (*p)[i]) {
			return fmt.Errorf("%q must be one of %s", (*p)[i], strings.Join(known, ", "))
		}
	}
	return nil
}

// Skips reports whether a phase is skipped.
func (p Phases) Skips(phase string) bool { return slices.Contains(p, phase) || slices.Contains(p, all) }

// SkipAll reports whether nothing is migrated.
func (p Phases) SkipAll() bool {
	return p.Skips(StorageVersionMigration) && p.Skips(CleanupManagedFields)
}
