import { forwardRef, type ButtonHTMLAttributes } from 'react'
import { Icon, type IconName } from './icons'

const looks = {
  /** One in a view at most. */
  primary: 'bg-accent text-onaccent border-transparent hover:opacity-90',
  plain: 'bg-ground text-ink border-line2 hover:bg-ground2',
  quiet: 'bg-transparent text-ink2 border-transparent hover:bg-ground3 hover:text-ink',
  danger: 'bg-ground text-bad border-line2 hover:bg-ground2',
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: keyof typeof looks
  icon?: IconName
  small?: boolean
  busy?: boolean
}

export const Button = forwardRef<HTMLButtonElement, ButtonProps>(function Button({ look = 'plain', icon, small, busy, className = '', children, disabled, ...rest }, ref) {
  return (
    <button ref={ref} type="button" disabled={disabled || busy} aria-busy={busy || undefined}
      className={`no-print inline-flex shrink-0 items-center justify-center gap-1.5 whitespace-nowrap rounded border font-strong transition-colors disabled:opacity-50 ${small ? 'h-6 px-2 text-xs' : 'h-8 px-3 text-sm'} ${looks[look]} ${className}`} {...rest}>
      {icon && <Icon name={icon} size={small ? 14 : 16} />}
      {children}
    </button>
  )
})

/** A button that shows an icon alone: its label is read out and shown on hover. */
export const IconButton = forwardRef<HTMLButtonElement, Omit<ButtonProps, 'icon' | 'children'> & { icon: IconName; label: string; pressed?: boolean }>(function IconButton({ icon, label, pressed, small, look = 'quiet', className = '', ...rest }, ref) {
  return (
    <button ref={ref} type="button" aria-label={label} title={label} aria-pressed={pressed}
      className={`no-print inline-flex shrink-0 items-center justify-center rounded border transition-colors disabled:opacity-50 ${small ? 'size-6' : 'size-8'} ${pressed ? 'border-line2 bg-ground3 text-ink' : looks[look]} ${className}`} {...rest}>
      <Icon name={icon} size={small ? 14 : 16} />
    </button>
  )
})
