package gotemplate

import (
	"fmt"
	"text/template/parse"
)

// Functions whose calls Parse inserts. Sources cannot call them, because they are unknown when a source is parsed.
const (
	chargeFunction = "_charge" // charges for an iteration of a loop
	enterFunction  = "_enter"  // charges for a call of a template, and counts the depth
	leaveFunction  = "_leave"
	rangeFunction  = "_range" // charges for starting a loop
)

// perNode is charged for each execution of a node.
const perNode = 16

// meter inserts calls that charge for loops and templates into parse trees, and collects the functions they use.
type meter struct {
	known, used map[string]function
}

// template meters the body of a template.
func (m *meter) template(body *parse.ListNode) error {
	price, err := m.node(body)
	if err != nil {
		return err
	}
	enter, err := call(fmt.Sprintf("%s %d", enterFunction, price))
	if err != nil {
		return err
	}
	leave, err := call(leaveFunction)
	if err != nil {
		return err
	}
	body.Nodes = append(append([]parse.Node{enter}, body.Nodes...), leave)
	return nil
}

// call returns an action that calls a function and renders nothing.
func call(source string) (parse.Node, error) {
	names := map[string]any{chargeFunction: 0, enterFunction: 0, leaveFunction: 0, rangeFunction: 0}
	trees, err := parse.Parse("limits", "{{"+source+"}}", "", "", names)
	if err != nil {
		return nil, err
	}
	return trees["limits"].Root.Nodes[0], nil
}

// node meters the loops below a node, and returns the price of executing the node once, without iterations of loops.
func (m *meter) node(n parse.Node) (price int64, err error) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return 0, nil
		}
		return m.nodes(n.Nodes)
	case *parse.ActionNode:
		return m.node(n.Pipe)
	case *parse.IfNode:
		return m.branch(&n.BranchNode)
	case *parse.WithNode:
		return m.branch(&n.BranchNode)
	case *parse.RangeNode:
		return m.loop(n)
	case *parse.TemplateNode:
		if n.Pipe == nil {
			return perNode, nil
		}
		return m.node(n.Pipe)
	case *parse.PipeNode:
		price, err = int64(perNode*(1+len(n.Decl))), nil
		for _, command := range n.Cmds {
			more, err := m.nodes(command.Args)
			if err != nil {
				return 0, err
			}
			price += perNode + more
		}
		return price, err
	case *parse.ChainNode:
		price, err = m.node(n.Node)
		return price + int64(perNode*len(n.Field)), err
	case *parse.FieldNode:
		return int64(perNode * len(n.Ident)), nil
	case *parse.VariableNode:
		return int64(perNode * len(n.Ident)), nil
	case *parse.IdentifierNode:
		if f, ok := m.known[n.Ident]; ok {
			m.used[n.Ident] = f
		}
		return perNode, nil
	case *parse.TextNode:
		return perNode + int64(len(n.Text)), nil
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.DotNode, *parse.NilNode,
		*parse.BreakNode, *parse.ContinueNode, *parse.CommentNode:
		return perNode, nil
	}
	return 0, fmt.Errorf("a %T is not supported in templates", n)
}

func (m *meter) nodes(all []parse.Node) (price int64, err error) {
	for _, n := range all {
		one, err := m.node(n)
		if err != nil {
			return 0, err
		}
		price += one
	}
	return price, nil
}

func (m *meter) branch(n *parse.BranchNode) (price int64, err error) {
	parts := []parse.Node{n.Pipe, n.List}
	if n.ElseList != nil {
		parts = append(parts, n.ElseList)
	}
	return m.nodes(parts)
}

// loop inserts a charge at the beginning of each iteration, and one for the value that is iterated over.
func (m *meter) loop(n *parse.RangeNode) (price int64, err error) {
	price, err = m.node(n.Pipe)
	if err != nil {
		return 0, err
	}
	iteration, err := m.node(n.List)
	if err != nil {
		return 0, err
	}
	charge, err := call(fmt.Sprintf("%s %d", chargeFunction, iteration+2*perNode))
	if err != nil {
		return 0, err
	}
	n.List.Nodes = append([]parse.Node{charge}, n.List.Nodes...)
	start, err := call("0 | " + rangeFunction)
	if err != nil {
		return 0, err
	}
	n.Pipe.Cmds = append(n.Pipe.Cmds, start.(*parse.ActionNode).Pipe.Cmds[1])
	if n.ElseList == nil {
		return price, nil
	}
	otherwise, err := m.node(n.ElseList)
	return price + otherwise, err
}
