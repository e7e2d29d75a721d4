package live

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// defaultWidth is the width of a table with reports that is not printed on a terminal.
const defaultWidth = 120

// Print prints the tree of a Cluster to Out once, with reports if options have them and the managers set them. Wide is as in
// tree.Style.
func Print(
	io *iostreams.Streams, now time.Time, cluster types.NamespacedName, objects *tree.Objects, options tree.Options, wide bool,
) error {
	options.Reports = options.Reports && tree.Reported(objects.Cluster(cluster))
	s := tree.Style{Color: io.OutColor(), Now: now, Wide: wide, Reports: options.Reports}
	switch {
	case io.OutTerminal():
		s.Width, _ = io.ErrSize()
		s.Short = true
	case options.Reports:
		s.Width = defaultWidth
	}
	return tree.Write(io.ColoredOut(), tree.Build(cluster, objects, options), s)
}
