# Completion of lockstep for bash. What it offers comes from the command itself (--help, data list), so it is never out of
# date.

_lockstep_options() { # COMMAND...: the options its help shows
	"$1" "${@:2}" --help all 2>/dev/null | sed -nE 's/^  (-[a-z], )?(--[a-z][a-z0-9-]*).*/\2/p' | sort -u
	echo --help
}

_lockstep_commands() { # COMMAND...: the subcommands its help shows
	"$1" "${@:2}" --help 2>/dev/null | sed -nE 's/^  ([a-z][a-z0-9]+) .*/\1/p' | grep -v '^lockstep$'
}

_lockstep_names() { # COMMAND...: the first column of its table
	"$1" "${@:2}" 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_lockstep_value() { # OPTION COMMAND...: the values it takes; fails for a file or a number
	case $1 in
	--compare) echo "published" ;;
	--fit) "${@:2}" --fit '?' 2>&1 | sed -n 's/.*Known: published, //p' | tr -d , ;;
	--help | -h) "${@:2}" --help 2>/dev/null | sed -n 's/^More: --help //p' | tr '|' ' ' ;;
	-*) "${@:2}" --help "$1" 2>/dev/null | sed -n 's/^    \([^ ]\{1,\}\) .*/\1/p' | grep . ;;
	*) return 1 ;;
	esac
}

_lockstep() {
	local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words
	local command=("$program" "${COMP_WORDS[1]}")
	if [ "${COMP_WORDS[1]}" = data ] && [ "$COMP_CWORD" -gt 2 ]; then
		command+=("${COMP_WORDS[2]}")
	fi
	if [ "${COMP_WORDS[*]:1:3}" = "data make vocab" ] && [ "$COMP_CWORD" -gt 3 ]; then
		command+=(vocab)
	fi
	if [[ "${COMP_WORDS[1]}" = slurm || "${COMP_WORDS[1]}" = k8s ]] && [[ " ${COMP_WORDS[*]:2:COMP_CWORD-2} " == *" -- "* ]]; then
		command[1]=train # behind the --
	fi
	if [ "$COMP_CWORD" = 1 ]; then
		words="$(_lockstep_commands "$program") --help --version"
	elif [ "${COMP_WORDS[1]}" = data ] && [ "$COMP_CWORD" = 2 ]; then
		words=$(_lockstep_commands "$program" data)
	elif [[ $word == -* ]]; then
		words=$(_lockstep_options "${command[@]}")
	elif ! words=$(_lockstep_value "$before" "${command[@]}"); then
		case "${COMP_WORDS[*]:1:3}" in
		bench*) [[ $before == -* && $before != --quick && $before != --full && $before != --again ]] || words=$("$program" bench --list 2>/dev/null | cut -d ' ' -f 1) ;;
		models*) [[ $before == -* ]] || words=$(_lockstep_names "$program" models) ;;
		"data make vocab") [ "$COMP_CWORD" -gt 3 ] || words=vocab ;;
		"data make"*) [[ $before == -* ]] || words="$(_lockstep_names "$program" data list) vocab" ;;
		"data get"* | "data info"* | "data show"*) [[ $before == -* ]] || words=$(_lockstep_names "$program" data list) ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _lockstep lockstep
