package campaign

import (
	"fmt"
	"io"
	"text/tabwriter"

	"sigs.k8s.io/cluster-api/test/fault/invariant"
)

// row is a line of the table.
type row struct {
	scenario, family     string
	runs, faults, broken int
}

// Report writes the table: for each scenario and family, the numbers of runs, injected faults, checked rules and violations.
// It returns the total number of violations.
func Report(out io.Writer, results []*Result) (violations int, err error) {
	var rows []*row
	index := map[[2]string]*row{}
	total := &row{scenario: "all"}
	for _, r := range results {
		key := [2]string{r.Scenario.Name, r.Family}
		if index[key] == nil {
			index[key] = &row{scenario: key[0], family: key[1]}
			rows = append(rows, index[key])
		}
		for _, one := range []*row{index[key], total} {
			one.runs++
			one.faults += r.Injected
			one.broken += len(r.Violations)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tFAMILY\tRUNS\tINJECTED FAULTS\tINVARIANTS CHECKED\tVIOLATIONS")
	for _, one := range append(rows, total) {
		family := one.family
		if family == "" && one != total {
			family = "none"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\n", one.scenario, family, one.runs, one.faults, one.runs*invariant.Count(), one.broken)
	}
	return total.broken, table.Flush()
}
