package template

import "github.com/drone/envsubst/v2/parse"

// maxWork bounds the comparisons of bytes for patterns.
const maxWork = 1 << 32

// cost is what it takes at most to evaluate a part of a template: replacing and trimming can multiply the length of a value
// by that of an argument. Numbers are floating-point because integers could overflow.
type cost struct {
	size, work float64
}

func costOf(node parse.Node, get func(string) string) cost {
	var c cost
	switch n := node.(type) {
	case *parse.TextNode:
		c.size = float64(len(n.Value))
	case *parse.ListNode:
		for _, child := range n.Nodes {
			part := costOf(child, get)
			c.size, c.work = c.size+part.size, c.work+part.work
		}
	case *parse.FuncNode:
		c = costOfFunction(n, get)
	}
	return c
}

func costOfFunction(n *parse.FuncNode, get func(string) string) cost {
	value := float64(len(get(n.Param)))
	var args cost
	for _, arg := range n.Args {
		part := costOf(arg, get)
		args.size, args.work = args.size+part.size, args.work+part.work
	}
	switch n.Name {
	case "//":
		return cost{size: value + (value+1)*args.size, work: args.work + value}
	case "/", "/#", "/%":
		return cost{size: value + args.size, work: args.work + value}
	case "#", "##", "%", "%%":
		return cost{size: max(value, 20), work: args.work + value*value*args.size} // Each part of the value is compared with the pattern.
	case ",", ",,", "^", "^^":
		return cost{size: 3 * value} // Letters may have longer counterparts.
	default:
		return cost{size: max(value, args.size), work: args.work}
	}
}
