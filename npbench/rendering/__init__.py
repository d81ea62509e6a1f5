"""Pictures of instances: panels, layouts, styles and the proof that a picture is legible."""
