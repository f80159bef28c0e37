cd /work/h/reader; args=""; for a in "$@"; do args="$args '$a'"; done; echo "## $*"; npx -c "node --conditions=holdfast-source craft.ts $args"
